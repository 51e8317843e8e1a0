#pragma once

#include <chrono>
#include <cstdint>

#include "simba/export.h"

// Two clocks that are never mixed.
//
// LocalTime is this machine's CLOCK_BOOTTIME: it runs while the machine is suspended, so a lease
// that ends in the store also ends here. StoreTime is the clock of a store: it is compared only
// with the time that came in the same answer, never with a clock of ours.
namespace simba::inline v0 {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct BootClock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  SIMBA_EXPORT static time_point now() noexcept;
};
using LocalTime = BootClock::time_point;

struct StoreClock {  // only the store itself can read it
  using duration = milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StoreClock, milliseconds>;
  static constexpr bool is_steady = false;
};
using StoreTime = StoreClock::time_point;

// A span that can be added to any time: one that is longer than a hundred years is a hundred years.
inline constexpr nanoseconds kLongestSpan = std::chrono::hours{24 * 36'500};
template <class Rep, class Period>
constexpr nanoseconds bounded(const std::chrono::duration<Rep, Period>& span) {
  using Seconds = std::chrono::duration<double>;
  if (Seconds(span) >= Seconds(kLongestSpan)) return kLongestSpan;
  if (Seconds(span) <= -Seconds(kLongestSpan)) return -kLongestSpan;
  return std::chrono::ceil<nanoseconds>(span);
}

// The fencing token of a term. It grows from term to term of one mutex; 0 is unknown.
using Token = std::uint64_t;

}  // namespace simba::inline v0
