#pragma once

#include <string_view>

#include "testing/servers/unique_fd.h"

namespace simba::servers {

// One of a few turns that all test processes share, waited for: ctest runs many cases at once
// because most of them sleep, and a dozen JVMs that start together would leave nobody any time.
//
// Threads: one object, one thread.
class Turn {
 public:
  Turn() = default;  // none
  // Of `count` turns of that kind.
  Turn(std::string_view kind, int count);

 private:
  UniqueFd lock_;
};

}  // namespace simba::servers
