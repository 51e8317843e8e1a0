#pragma once

#include <optional>
#include <string>

#include "simba/error.h"
#include "simba/redis.h"
#include "stores/redis/reply.h"

namespace simba::redis {

// What an error of the server means to a caller: which kind of trouble, where, and what to do.
Error failure(const Reply& error, const std::string& where);
// The same of a sentinel, which has users of its own.
Error sentinel_failure(const Reply& error, const std::string& where);
// The same of an answer to AUTH, without its words: servers repeat what they do not understand.
Error login_failure(const Reply& error, const std::string& where);
// Of a server that takes nobody in and hangs up: why; none: something else. Its words are not
// repeated: they may be those of somebody who repeats a password.
std::optional<Error> refusal(const Reply& reply, const std::string& where);
// After this the server is not the one to ask: it has become a replica, or is not one yet.
bool wants_another_server(const Reply& error);
// The rights that a contender needs, and who only looks, for an administrator to paste.
std::string contender_acl(RedisOptions::Topology topology);
std::string observer_acl(RedisOptions::Topology topology);
std::string acl_advice();

}  // namespace simba::redis
