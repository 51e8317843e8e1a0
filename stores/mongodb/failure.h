#pragma once

#include <mongoc/mongoc.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "simba/error.h"

namespace simba::mongodb {

// Numbers that MongoDB gives its errors; the text differs by version.
struct ServerCode {
  static constexpr int kUnauthorized = 13;
  static constexpr int kAuthenticationFailed = 18;
  static constexpr int kNamespaceExists = 48;
  static constexpr int kDuplicateKey = 11000;
  static constexpr int kNoChangeStreams = 40573;  // not a replica set
};

// An error of the server, or of the way there.
class Failure : public Error {
 public:
  Failure(Errc code, const std::string& what, int server_code)
      : Error(code, what), server_code_(server_code) {}
  int server_code() const noexcept { return server_code_; }  // 0: the server did not speak

 private:
  int server_code_;
};

// What an error means to a caller: which kind of trouble, where, and what to do.
Failure failure(const bson_error_t& error, const bson_t* reply, const std::string& where);
// The same of a number and a text that stood in a reply.
Failure server_failure(int code, const std::string& text, const std::string& where);
// How our own sockets begin to say that TLS has nothing to begin with.
inline constexpr std::string_view kNoTls = "TLS could not be set up";
// Whether the driver's text, for which it has no code, says that a server does not prove who it is:
// that does not pass by itself.
bool is_unproven(std::string_view text);
Failure unproven(const std::string& text, const std::string& where);
// Throws Error (kMisconfigured) for a server that cannot decide an update by its own clock, as its
// greeting says.
void check_version(const bson_t* hello, const std::string& where);
// The same, also for a router of a sharded cluster: the clocks of the routers would decide, each
// for itself. Error (kUnreachable) for one that is not the primary: it may become it.
void check_greeting(const bson_t* hello, const std::string& where);
// Whether a client that met it should not be used for the next call.
bool breaks_connection(const Failure& failure);

}  // namespace simba::mongodb
