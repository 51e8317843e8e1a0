#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace simba::core {

// Where a thread waits for something about a contender to change. A ring between a look and the
// wait that follows it is not missed: the look happens under the bell's lock.
//
// Threads: any.
class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  Bell() = default;
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() {
    if (interrupt_ >= 0) ::close(interrupt_);
  }

  // Who has looked is waiting by the time the lock can be had; told after it is free again, it does
  // not run into it.
  void ring() {
    {
      const std::lock_guard lock(guard_);
      // A listener that rings itself is awake.
      if (listens_ && !was_interrupted_ && listener_ != std::this_thread::get_id()) {
        was_interrupted_ = eventfd_write(interrupt_, 1) == 0;
      }
    }
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

  // The same for one thread, which listens elsewhere while it waits: `listen(descriptor)` returns
  // when it heard something or when the descriptor is readable; false: it cannot.
  template <class Done, class Listen>
  bool wait(Clock::time_point until, Done done, Listen listen) {
    while (true) {
      {
        const std::lock_guard lock(guard_);
        if (done()) return true;
        if (until <= Clock::now()) return false;
        if (interrupt_ < 0) interrupt_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (interrupt_ < 0) break;
        listens_ = true;
        listener_ = std::this_thread::get_id();
      }
      const bool could = listen(interrupt_);
      const std::lock_guard lock(guard_);
      listens_ = false;
      if (eventfd_t rings = 0; was_interrupted_) eventfd_read(interrupt_, &rings);
      was_interrupted_ = false;
      if (!could) break;
    }
    return wait(until, done);
  }

 private:
  std::mutex guard_;
  std::condition_variable rung_;
  int interrupt_ = -1;            // guarded by guard_
  bool listens_ = false;          // guarded by guard_
  bool was_interrupted_ = false;  // guarded by guard_
  std::thread::id listener_;      // guarded by guard_
};

}  // namespace simba::core
