#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "testing/servers/postgres_server.h"

namespace simba::servers {

// A primary and a standby. Without a word about `synchronous_standby_names` in the settings it is a
// synchronous one: what is acknowledged is on both, and while one is alone nothing is.
//
// Threads: one at a time.
class PostgresPair {
 public:
  explicit PostgresPair(PostgresSettings settings = {});

  void start();  // and waits until one follows the other
  // Of both.
  std::string url(const std::string& query = {}) const;
  PostgresServer& operator[](std::size_t index) { return *servers_.at(index); }
  std::size_t primary() const;  // throws std::runtime_error where none leads
  // One leads and the other follows it, as closely as the settings say.
  bool is_whole() const;
  // The primary is killed with all its processes, and the standby promoted; does not wait for it.
  void fail_over();
  // The one that was killed comes back as a standby of the other; does not wait for it.
  void follow(std::size_t index);

 private:
  PostgresSettings settings_;
  std::array<std::unique_ptr<PostgresServer>, 2> servers_;
};

}  // namespace simba::servers
