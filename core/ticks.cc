#include "core/ticks.h"

namespace simba::core {

std::uint64_t Ticks::ran(LocalTime now) {
  if (config_.strategy == ScheduleConfig::Strategy::kFixedDelay) {
    next_ = now + config_.period;
    return 0;
  }
  next_ += config_.period;
  if (next_ >= now || config_.missed == ScheduleConfig::Missed::kCatchUp) return 0;
  // The latest tick that has passed runs at once, late; those before it are missed.
  const nanoseconds period = config_.period;
  const auto missed = (now - next_) / period;
  next_ += missed * period;
  return static_cast<std::uint64_t>(missed);
}

}  // namespace simba::core
