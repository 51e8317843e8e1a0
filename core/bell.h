#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace simba::core {

// Where a thread waits for something about a contender to change. A ring between a look and the
// wait that follows it is not missed: the look happens under the bell's lock.
//
// Threads: any.
class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  // Who has looked is waiting by the time the lock can be had; told after it is free again, it does
  // not run into it.
  void ring() {
    { const std::lock_guard lock(guard_); }
    rung_.notify_all();
  }

  // True when `done()` is; false when `until` came first.
  template <class Done>
  bool wait(Clock::time_point until, Done done) {
    std::unique_lock lock(guard_);
    if (until == Clock::time_point::max()) {
      rung_.wait(lock, done);
      return true;
    }
    return rung_.wait_until(lock, until, done);
  }

 private:
  std::mutex guard_;
  std::condition_variable rung_;
};

}  // namespace simba::core
