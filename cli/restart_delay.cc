#include "cli/restart_delay.h"

#include <algorithm>

namespace simba::cli {

milliseconds restart_delay(milliseconds first, unsigned failures) {
  constexpr milliseconds kLongest{30'000};
  const unsigned doublings = std::min(failures == 0 ? 0U : failures - 1, 16U);
  return std::min(first * (1 << doublings), std::max(kLongest, first));
}

}  // namespace simba::cli
