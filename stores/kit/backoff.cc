#include "stores/kit/backoff.h"

#include <algorithm>

namespace simba::kit {

nanoseconds Backoff::next(std::uint64_t random) noexcept {
  current_ = std::clamp(2 * current_, first_, longest_);
  const auto half = static_cast<std::uint64_t>(nanoseconds(current_).count() / 2);
  return nanoseconds(current_) - nanoseconds(static_cast<nanoseconds::rep>(random % (half + 1)));
}

}  // namespace simba::kit
