#pragma once

#include <optional>

#include "simba/export.h"
#include "simba/time.h"

namespace simba::inline v0 {

// Added to the moment at which a waiter asks again, so that waiters do not ask all at once:
// at or after `from`, before `to`.
struct Jitter {
  milliseconds from{-200};
  milliseconds to{1000};

  friend bool operator==(const Jitter&, const Jitter&) = default;
};

// How one contender holds a mutex and waits for it. Validated as a whole where a contender is made:
// what cannot work is refused with the numbers.
struct SIMBA_EXPORT ContendOptions {
  milliseconds initial_delay{0};  // of a service, before its first claim; a lock never waits for it
  milliseconds ttl{10'000};
  milliseconds transition{6'000};
  Jitter jitter;

  // The owner renews after this share of the time in which is_in_ttl() holds, the first time up to
  // a quarter sooner, to go out with others. 1.0: at its end.
  double renew_at = 2.0 / 3.0;
  // For on_released to finish, inside the lease. Default: min(1 s, transition / 2).
  std::optional<milliseconds> grace;
  // Of one store call. Default: an eighth of the time in which is_in_ttl() holds.
  std::optional<milliseconds> call_deadline;
  // Longest pause after a failed call. Default: a sixteenth of the same.
  std::optional<milliseconds> max_backoff;
  // Shortest pause after a failed call; it doubles from there. Default: a sixteenth of the longest.
  std::optional<milliseconds> min_backoff;
  // A waiter asks at least this often. Default: 5 s with a store that pushes, else 1 s. 0: only
  // when the lease it knows of ends.
  std::optional<milliseconds> safety_poll;
  // Where the store cannot push, a waiter's first question after a refusal comes this much later,
  // plus a jitter of up to `jitter.to`; each further one after twice as long, up to `safety_poll`.
  // Default: each after `safety_poll`.
  std::optional<milliseconds> first_poll;
  // A term ends after this, however healthy. 0: never.
  milliseconds max_hold{0};

  friend bool operator==(const ContendOptions&, const ContendOptions&) = default;
};

// What follows from the options: the local deadlines of a term, counted from `s`, the moment before
// the last answered claim was sent.
//
//   s        renew                ttl_end            revoke_at             store: free for others
//   |----------|---------------------|-------------------|---- guard -----------|
//   | is_in_ttl() and is_owner()     | is_owner() only   | on_released finishes |
struct SIMBA_EXPORT Timing {
  milliseconds ttl, transition;
  nanoseconds ttl_end;    // s + this: is_in_ttl() ends
  nanoseconds revoke_at;  // s + this: is_owner() ends
  nanoseconds renew;      // s + this: renewal
  nanoseconds grace;
  nanoseconds patience;  // with the work at a clean end, where the lease is still renewed
  nanoseconds call_deadline;
  nanoseconds max_backoff;
  nanoseconds min_backoff;

  nanoseconds lease() const { return ttl + transition; }

  // Throws Error (kMisconfigured) that names the value, the limit and what to do.
  static Timing of(const ContendOptions& options);
};

}  // namespace simba::inline v0
