#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "testing/servers/unique_fd.h"

namespace simba::servers {

// A server that the cases of many test processes use together: ctest starts a process per case, and
// a server for each would cost more than the cases. The first user starts a keeper process, which
// starts the server, and stops it once nobody has used it for some seconds. script/test does not
// leave that to time: at its end, also after Ctrl-C, it lets `simba_keep_server --end` see to it.
//
//   const SharedServer server("zookeeper");   // throws Unavailable, with the reason
//   server.address();                         // what the keeper's table says: host and port, a URL
//
// No test may stop or kill it, nor expect to be alone on it.
//
// Threads: one object, one thread.
class SharedServer {
 public:
  // "mariadb" is MySQL where tests_mysql() says so.
  explicit SharedServer(std::string_view asked);

  const std::string& address() const { return address_; }

 private:
  UniqueFd use_;  // a shared lock: the keeper goes when it can have it alone
  std::string address_;
};

// The server that a suite runs on: the user's own, if SIMBA_TEST_<STORE>_URL in the environment
// names one, else the shared one.
//
// Threads: one object, one thread.
class TestServer {
 public:
  // "mariadb", "mongodb", "mongodb-users", "postgres", "redis", "zookeeper". Throws Unavailable.
  explicit TestServer(std::string_view name);

  // As connect() takes it, with more parameters: "name=value&name=value".
  std::string url(const std::string& more = {}) const;
  bool is_shared() const { return shared_.has_value(); }

 private:
  std::optional<SharedServer> shared_;
  std::string url_;
};

}  // namespace simba::servers
