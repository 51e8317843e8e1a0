#pragma once

#include <chrono>

#include "simba/time.h"
#include "stores/kit/worker.h"

namespace simba::kit {

// For tests: true as soon as `done` is; false when it never came true.
template <class Done>
bool eventually(Done done) {
  const StopSignal moment;
  const LocalTime until = BootClock::now() + std::chrono::seconds{45};
  while (!done()) {
    if (BootClock::now() >= until) return done();
    moment.pause(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace simba::kit
