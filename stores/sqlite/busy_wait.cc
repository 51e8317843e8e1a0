#include "stores/sqlite/busy_wait.h"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include "stores/sqlite/host.h"

namespace simba::sqlite {
namespace {

// A process that takes and releases in a loop leaves the lock free for microseconds only. Whoever
// sleeps through these gaps starves, so the first wait is awake, and gives the processor away.
constexpr nanoseconds kAwake = std::chrono::microseconds{500};
constexpr nanoseconds kFirstNap = std::chrono::microseconds{50};
constexpr nanoseconds kLongestNap = milliseconds{1};

void nap(nanoseconds length) noexcept {
  const timespec ts{length.count() / 1'000'000'000, length.count() % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, nullptr);
}

}  // namespace

void BusyWait::start(LocalTime deadline) noexcept {
  deadline_ = deadline;
  has_waited_ = false;
}

bool BusyWait::again(int count) noexcept {
  const LocalTime now = local_now();
  if (count == 0) since_ = now;
  if (now >= deadline_) return false;
  has_waited_ = true;
  const nanoseconds waited = now - since_;
  if (waited < kAwake) {
    sched_yield();
    return true;
  }
  // Grows with the wait: a holder that is stopped for seconds costs little.
  const nanoseconds length = std::clamp(waited / 16, kFirstNap, kLongestNap);
  nap(std::min(length, deadline_ - now));
  return true;
}

int BusyWait::handle(void* self, int count) noexcept {
  return static_cast<BusyWait*>(self)->again(count) ? 1 : 0;
}

}  // namespace simba::sqlite
