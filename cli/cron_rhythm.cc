#include "cli/cron_rhythm.h"

#include <algorithm>

namespace simba::cli {
namespace {

// A step of this size is how clocks are kept right, and does not bring back a minute that was.
constexpr std::time_t kSmallStep = 60;

std::time_t seconds_of(CronRhythm::WallTime at) {
  return std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at));
}

}  // namespace

CronRhythm::CronRhythm(Cron cron, WallTime now)
    : cron_(cron), done_(seconds_of(now)), next_(cron_.next(done_)) {}

std::optional<nanoseconds> CronRhythm::until_next(WallTime now) {
  const std::time_t seconds = seconds_of(now);
  if (seconds < done_ - kSmallStep) {
    done_ = seconds;
    next_ = cron_.next(seconds);
  }
  if (!next_) return std::nullopt;
  return std::chrono::system_clock::from_time_t(*next_) - now;
}

std::uint64_t CronRhythm::ran(WallTime now) {
  if (next_) {
    done_ = *next_;
    next_ = cron_.next(done_);
  }
  const std::time_t seconds = seconds_of(now);
  return advance(seconds - seconds % 60 - 1);
}

std::uint64_t CronRhythm::skip(WallTime now) { return advance(seconds_of(now)); }

std::uint64_t CronRhythm::advance(std::time_t until) {
  std::uint64_t missed = 0;
  done_ = std::max(done_, until);
  while (next_ && *next_ <= until) {
    next_ = cron_.next(missed == kMostCounted ? until : *next_);
    if (missed < kMostCounted) ++missed;
  }
  return missed;
}

}  // namespace simba::cli
