#pragma once

#include <string>
#include <string_view>

#include "testing/servers/unique_fd.h"

namespace simba::servers {

// A server that the cases of many test processes use together: ctest starts a process per case, and
// a server for each would cost more than the cases. The first user starts a keeper process, which
// starts the server, and stops it once nobody has used it for some seconds.
//
//   const SharedServer server("zookeeper");   // throws Unavailable, with the reason
//   server.address();                         // what the keeper's table says: host and port, a URL
//
// No test may stop or kill it, nor expect to be alone on it.
//
// Threads: one object, one thread.
class SharedServer {
 public:
  explicit SharedServer(std::string_view kind);

  const std::string& address() const { return address_; }

 private:
  UniqueFd use_;  // a shared lock: the keeper goes when it can have it alone
  std::string address_;
};

}  // namespace simba::servers
