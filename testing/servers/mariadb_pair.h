#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "testing/servers/mariadb.h"

namespace simba::servers {

// A primary and a replica, semi-synchronous (AFTER_SYNC): what is acknowledged is on both, and
// while one is alone nothing is.
//
// Threads: one at a time.
class MariadbPair {
 public:
  MariadbPair();

  void start();  // and waits until one follows the other
  // Of both, as somebody who may not write to the replica.
  std::string url() const;
  MariadbServer& operator[](std::size_t index) { return *servers_.at(index); }
  std::size_t primary() const;  // throws std::runtime_error where none leads
  bool is_whole() const;        // one leads and the other follows it
  // The primary is killed, and the replica takes its place with all that it was sent.
  void fail_over();
  // Who follows leads from now on, with all that it was sent. The other one has been killed, or
  // only reads.
  void promote(std::size_t heir);
  // The one that was killed comes back as a replica of the other, and has by itself nothing of what
  // it did; does not wait for it.
  void follow(std::size_t index);

 private:
  std::string ask(std::size_t index, const std::string& sql,
                  const std::string& option = "--skip-column-names") const;

  std::array<std::unique_ptr<MariadbServer>, 2> servers_;
  Directory first_;  // the data that both begin with
  int last_id_ = 1;  // of servers: who comes back is another one, or it would skip what it had done
};

}  // namespace simba::servers
