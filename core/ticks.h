#pragma once

#include <cstdint>

#include "simba/scheduler.h"
#include "simba/time.h"

namespace simba::core {

// When the next run of a schedule is due, within one term.
//
// Threads: none of its own; calls must be serialized.
class Ticks {
 public:
  // A term began.
  Ticks(const ScheduleConfig& config, LocalTime now)
      : config_(config), next_(now + config.initial_delay) {}

  LocalTime next() const { return next_; }
  // A run that was due at next() has ended. Returns how many ticks it made the schedule miss.
  std::uint64_t ran(LocalTime now);

 private:
  const ScheduleConfig config_;
  LocalTime next_;
};

}  // namespace simba::core
