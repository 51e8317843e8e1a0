#include <algorithm>
#include <cmath>
#include <string>

#include "simba/error.h"
#include "simba/lock_manager.h"

namespace simba::inline v0 {
namespace {

constexpr double kMostBuffer = 10.0;
constexpr double kRenewAtMost = 2.0 / 3.0;

std::string text(milliseconds span) { return std::to_string(span.count()) + " ms"; }

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "lock manager: " + why);
}

void check(const TemporalAlignmentStrategy& s) {
  if (!(s.lock_ttl_buffer_coefficient >= 1.0 && s.lock_ttl_buffer_coefficient <= kMostBuffer)) {
    refuse("lock_ttl_buffer_coefficient is " + std::to_string(s.lock_ttl_buffer_coefficient) +
           "; it must be between 1.0 and 10.0 (1.1: a lease a tenth longer than the ttl)");
  }
  if (s.beat_interval < milliseconds{1}) {
    refuse("beat_interval is " + text(s.beat_interval) + "; it must be at least 1 ms");
  }
  using Milliseconds = std::chrono::duration<double, std::milli>;  // these do not overflow
  if (Milliseconds(s.beat_interval) * 3 > Milliseconds(s.lock_ttl) * 2) {
    refuse("beat_interval is " + text(s.beat_interval) + ", but with a lock_ttl of " +
           text(s.lock_ttl) + " it may be two thirds of that at most, or one slow renewal ends " +
           "the lock: beat more often, or make lock_ttl longer");
  }
  if (s.base_backoff < milliseconds{1} || s.base_backoff > s.max_delay) {
    refuse("base_backoff is " + text(s.base_backoff) +
           "; it must be between 1 ms and max_delay, which is " + text(s.max_delay));
  }
  if (s.max_jitter < milliseconds{0} || s.max_jitter > s.max_delay) {
    refuse("max_jitter is " + text(s.max_jitter) + "; it must be between 0 ms and max_delay, " +
           "which is " + text(s.max_delay));
  }
}

}  // namespace

ContendOptions TemporalAlignmentStrategy::contend_options(milliseconds ttl) const {
  check(*this);
  ContendOptions options;
  options.ttl = ttl;
  options.transition = milliseconds{
      std::llround(static_cast<double>(ttl.count()) * (lock_ttl_buffer_coefficient - 1))};
  options.jitter = {milliseconds{0}, max_jitter};
  options.safety_poll = max_delay;
  options.first_poll = base_backoff;
  const Timing timing = Timing::of(options);  // the rest follows from how long an owner may work
  const auto window = static_cast<double>(timing.ttl_end.count());
  const double beat = std::chrono::duration<double, std::nano>(beat_interval).count();
  options.renew_at = std::min(beat / window, kRenewAtMost);
  // A renewal that failed is tried again inside the lease, whatever waiters do.
  const auto longest = std::chrono::floor<milliseconds>(timing.max_backoff);
  options.max_backoff = std::clamp(longest, milliseconds{1}, max_delay);
  options.min_backoff = std::min(base_backoff, *options.max_backoff);
  static_cast<void>(Timing::of(options));
  return options;
}

}  // namespace simba::inline v0
