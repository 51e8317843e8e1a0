#pragma once

#include <cstdint>
#include <string>

#include "simba/export.h"
#include "simba/mutex_owner.h"
#include "simba/options.h"

namespace simba::inline v0 {

// When to ask next: the owner at the end of its TTL, everybody else at the end of the transition
// plus a jitter that keeps waiters apart.
//
// A pure function of its arguments: `random` is any 64 random bits.
class SIMBA_EXPORT ContendPeriod {
 public:
  ContendPeriod(std::string wire_id, Jitter jitter);

  // May be negative: the moment has passed.
  milliseconds next_delay(const MutexOwner& owner, StoreTime now, std::uint64_t random) const;
  milliseconds ensure_next_delay(const MutexOwner& owner, StoreTime now,
                                 std::uint64_t random) const;

  // The waiter's half, without a copy of the wire id.
  static milliseconds contender_delay(const MutexOwner& owner, StoreTime now, Jitter jitter,
                                      std::uint64_t random);

 private:
  std::string wire_id_;
  Jitter jitter_;
};

}  // namespace simba::inline v0
