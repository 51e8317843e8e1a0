#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "simba/store.h"
#include "stores/mongodb/document.h"

// The commands on the collection. A document:
//
//   _id        the mutex
//   ownerId    the owner's wire id; '' for nobody
//   ttlMs      ttl + transition, milliseconds
//   expiresAt  the end of the whole lease, milliseconds by the server's clock; renewedAt + ttlMs of
//              ours, where that is sooner: Java's heartbeat puts it off unasked
//   wireId     our part, believed only while it equals ownerId: another writer knows the first four
//   ttlAt, acquiredAt, renewedAt   milliseconds by the server's clock
//   token      the fencing token; it also counts when it is not believed
//
// $$NOW is the server's clock and stands still during one command.
namespace simba::mongodb {

// Free, or this wire id's own and still running. Without the _id.
Document may_take(const Claim& claim);
// A new term, or the running one with a new lease.
Document taken(const Claim& claim);
// A running lease of this term.
Document may_renew(const Claim& claim);
Document renewed(milliseconds ttl, milliseconds transition);
// Nobody's, free at once; the token stays.
Document released();
// Nobody's, the end of the lease stays.
Document evicted();
// Whose exactly this term is; token 0: whose this wire id is.
Document is_term(std::string_view mutex, std::string_view wire_id, Token token);
// What a mutex looks like that nobody took.
Document placeholder(std::string_view mutex);
// Whose lease runs by the server's clock.
Document lease_runs();

struct Update {
  Document filter, change;
  bool many = false;
};
Document update_command(const std::string& collection, std::span<const Update> updates);
Document modify_command(const std::string& collection, const Document& filter,
                        const Document& change);
Document insert_command(const std::string& collection, std::span<const std::string_view> mutexes);
Document observe_command(const std::string& collection, std::span<const std::string_view> mutexes);
Document list_command(const std::string& collection, std::string_view prefix, std::string_view from,
                      std::size_t limit);
// Ends what an answer had no room for.
Document kill_command(const std::string& collection, std::int64_t cursor);

}  // namespace simba::mongodb
