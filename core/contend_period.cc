#include "simba/contend_period.h"

#include <algorithm>
#include <utility>

#include "core/store_span.h"

namespace simba::inline v0 {

ContendPeriod::ContendPeriod(std::string wire_id, Jitter jitter)
    : wire_id_(std::move(wire_id)), jitter_(jitter) {}

milliseconds ContendPeriod::contender_delay(const MutexOwner& owner, StoreTime now, Jitter jitter,
                                            std::uint64_t random) {
  // Without a transition there is nothing an early bird could gain.
  const bool transition_is_zero = owner.ttl_at && *owner.ttl_at == owner.transition_at;
  const milliseconds from =
      transition_is_zero ? std::max(jitter.from, milliseconds{0}) : jitter.from;
  const auto range =
      static_cast<std::uint64_t>(std::max((jitter.to - from).count(), milliseconds::rep{0}));
  const milliseconds drawn{range == 0 ? 0 : static_cast<milliseconds::rep>(random % range)};
  return core::span_until(owner.transition_at, now) + from + drawn;
}

milliseconds ContendPeriod::next_delay(const MutexOwner& owner, StoreTime now,
                                       std::uint64_t random) const {
  if (owner.is_owner(wire_id_)) {
    return core::span_until(owner.ttl_at.value_or(owner.transition_at), now);
  }
  return contender_delay(owner, now, jitter_, random);
}

milliseconds ContendPeriod::ensure_next_delay(const MutexOwner& owner, StoreTime now,
                                              std::uint64_t random) const {
  return std::max(next_delay(owner, now, random), milliseconds{0});
}

}  // namespace simba::inline v0
