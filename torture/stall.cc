#include "torture/stall.h"

#include <algorithm>

namespace simba::torture {

nanoseconds stood_still(const std::vector<Stall>& stalls, LocalTime from, LocalTime until) {
  nanoseconds sum{0};
  for (const Stall& stall : stalls) {
    const nanoseconds within =
        std::min(until, stall.at) - std::max<LocalTime>(from, stall.at - stall.length);
    sum += std::max(within, nanoseconds{0});
  }
  return sum;
}

}  // namespace simba::torture
