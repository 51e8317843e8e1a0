#pragma once

#include <algorithm>

#include "simba/time.h"

namespace simba::testing {

// What a round took in which nothing came about.
inline constexpr nanoseconds kNever = nanoseconds::max();

// The least of some rounds: as many as it takes to be within the bound, for a busy machine is late
// by chance. kNever where one failed.
template <class Round>
nanoseconds best_of(int rounds, nanoseconds bound, Round round) {
  nanoseconds least = kNever;
  for (int i = 0; i < rounds && least >= bound; ++i) {
    const nanoseconds took = round();
    if (took == kNever) return kNever;
    least = std::min(least, took);
  }
  return least;
}

}  // namespace simba::testing
