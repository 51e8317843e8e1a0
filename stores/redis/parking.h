#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "simba/time.h"

namespace simba::redis {

// A word that one thread waits for and another changes. Where a condition variable would have to be
// told under its lock, lest it is gone, this is told after it: waking an address that is not in use
// any more harms nobody.
//
// Threads: any.
class Parking {
 public:
  explicit Parking(std::uint32_t value) : word_(value) {}

  std::uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void set(std::uint32_t value) { word_.store(value, std::memory_order_release); }

  // Returns when it is no longer `value`, at the deadline, or for no reason.
  void wait(std::uint32_t value, LocalTime deadline) {
    const nanoseconds left = std::max(deadline - BootClock::now(), nanoseconds{0});
    const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    const bool for_ever = deadline == LocalTime::max();
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, value, for_ever ? nullptr : &time, nullptr, 0);
  }
  // After set(), also when this object is gone.
  static void wake(const Parking* parking) noexcept {
    syscall(SYS_futex, parking, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  std::atomic<std::uint32_t> word_;
};
static_assert(sizeof(Parking) == sizeof(std::uint32_t));

}  // namespace simba::redis
