#include "simba/time.h"

#include <ctime>

namespace simba::inline v0 {

BootClock::time_point BootClock::now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point{std::chrono::seconds{ts.tv_sec} + nanoseconds{ts.tv_nsec}};
}

}  // namespace simba::inline v0
