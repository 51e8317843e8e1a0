#pragma once

#include <vector>

#include "simba/time.h"

namespace simba::torture {

// The machine stood still until then: a thread that wanted to run could not.
struct Stall {
  LocalTime at{};
  nanoseconds length{};
};
// How long it did between the two.
nanoseconds stood_still(const std::vector<Stall>& stalls, LocalTime from, LocalTime until);

}  // namespace simba::torture
