#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

#include "cli/cron.h"
#include "simba/time.h"

namespace simba::cli {

// Which time of a cron expression comes next, and how many went by unused. The clock is the one on
// the wall, which people set: forward, and what it skipped is missed; back by more than a minute,
// and the times it shows again come again.
//
// A plain value. It never reads a clock: the caller says what time it is.
class CronRhythm {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  // More than this are not counted one by one.
  static constexpr std::uint64_t kMostCounted = 1'000;

  CronRhythm(Cron cron, WallTime now);

  // From now on; not positive: at once. None: never.
  std::optional<nanoseconds> until_next(WallTime now);
  // The run that was due has ended. How many were missed meanwhile; the minute that is now is not
  // over.
  std::uint64_t ran(WallTime now);
  // Nobody looked for a while. How many went by, the minute that is now among them.
  std::uint64_t skip(WallTime now);

 private:
  std::uint64_t advance(std::time_t until);

  Cron cron_;
  std::time_t done_;                 // up to here all were run or counted
  std::optional<std::time_t> next_;  // the first after it
};

}  // namespace simba::cli
