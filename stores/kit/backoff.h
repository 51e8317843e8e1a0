#pragma once

#include <cstdint>

#include "simba/time.h"

namespace simba::kit {

// How long to leave a server alone that has just failed us: twice as long each time, up to a limit,
// and between half and all of that, so that many processes do not come back together.
//
// A plain value; it never reads a clock. Threads: one at a time.
class Backoff {
 public:
  Backoff(milliseconds first, milliseconds longest) : first_(first), longest_(longest) {}

  nanoseconds next(std::uint64_t random) noexcept;
  void reset() noexcept { current_ = {}; }

 private:
  milliseconds first_, longest_;
  milliseconds current_{};
};

}  // namespace simba::kit
