#pragma once

#include <cstdint>

#include "simba/time.h"

namespace simba::core {

// From `now` until then, by one store's clock. What a store says may be far away, or nonsense: more
// than a year is a year, so that sums with it do not overflow.
inline milliseconds span_until(StoreTime until, StoreTime now) {
  constexpr milliseconds kForever = std::chrono::hours{24 * 365};
  const auto bits = [](StoreTime time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
  };
  // The difference itself may be beyond 63 bits, but not beyond 64.
  const std::uint64_t span = until >= now ? bits(until) - bits(now) : bits(now) - bits(until);
  const bool is_far = span > static_cast<std::uint64_t>(kForever.count());
  const milliseconds length = is_far ? kForever : milliseconds{static_cast<std::int64_t>(span)};
  return until >= now ? length : -length;
}

}  // namespace simba::core
