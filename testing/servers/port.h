#pragma once

#include <cstdint>

#include "testing/servers/unique_fd.h"

namespace simba::servers {

// A TCP port of 127.0.0.1 that is ours while this object lives: every test process takes its ports
// through here, and a file lock per port keeps two of them from the same one, also while the server
// behind it is down. The kernel drops the lock of a process that crashed.
//
// Threads: one object, one thread.
class Port {
 public:
  Port();  // any free one; throws std::runtime_error when there is none

  std::uint16_t number() const { return number_; }

 private:
  bool take(std::uint16_t candidate);

  std::uint16_t number_ = 0;
  UniqueFd lock_;
};

}  // namespace simba::servers
