#include "simba/options.h"

#include <algorithm>
#include <string>

#include "simba/error.h"

namespace simba::inline v0 {
namespace {

using std::chrono::duration_cast;

constexpr milliseconds kLongest = std::chrono::hours{24 * 365};
constexpr nanoseconds kSmallestWindow = milliseconds{100};
constexpr nanoseconds kSmallestMargin = milliseconds{50};

std::string text(milliseconds span) { return std::to_string(span.count()) + " ms"; }

std::string text(nanoseconds span) { return text(duration_cast<milliseconds>(span)); }

[[noreturn]] void refuse(const std::string& why) { throw Error(Errc::kMisconfigured, why); }

void check_range(const char* name, milliseconds value, milliseconds least) {
  if (value < least || value > kLongest) {
    refuse(std::string(name) + " is " + text(value) + "; it must be between " + text(least) +
           " and one year");
  }
}

void check_ranges(const ContendOptions& o) {
  check_range("ttl", o.ttl, milliseconds{1});
  check_range("transition", o.transition, milliseconds{0});
  check_range("initial delay", o.initial_delay, milliseconds{0});
  check_range("maximum hold time", o.max_hold, milliseconds{0});
  if (o.grace) check_range("grace", *o.grace, milliseconds{0});
  if (o.call_deadline) check_range("call deadline", *o.call_deadline, milliseconds{1});
  if (o.max_backoff) check_range("longest backoff", *o.max_backoff, milliseconds{1});
  if (o.min_backoff) check_range("shortest backoff", *o.min_backoff, milliseconds{1});
  if (o.safety_poll) check_range("safety poll", *o.safety_poll, milliseconds{0});
  if (o.first_poll) check_range("first poll", *o.first_poll, milliseconds{1});
  if (!(o.renew_at > 0.0 && o.renew_at <= 1.0)) {
    refuse("renew_at is " + std::to_string(o.renew_at) + "; it must be above 0 and at most 1");
  }
  if (o.jitter.from > o.jitter.to || o.jitter.from < -kLongest || o.jitter.to > kLongest) {
    refuse("jitter goes from " + text(o.jitter.from) + " to " + text(o.jitter.to) +
           "; it must not end before it begins");
  }
}

void check_window(const ContendOptions& o, const Timing& t) {
  if (t.ttl_end >= kSmallestWindow && t.ttl_end * 2 >= o.ttl) return;
  refuse("with ttl " + text(o.ttl) + ", transition " + text(o.transition) + " and grace " +
         text(t.grace) + " the owner may work for " + text(std::max(t.ttl_end, nanoseconds{0})) +
         " only; it must be at least " + text(kSmallestWindow) +
         " and half the ttl: make ttl or transition longer, or grace shorter");
}

void check_renewal(const Timing& t) {
  const nanoseconds needed = t.renew + 2 * t.call_deadline + t.max_backoff;
  if (needed <= t.revoke_at) return;
  refuse("renewal at " + text(t.renew) + ", two calls of " + text(t.call_deadline) +
         " and a backoff of " + text(t.max_backoff) + " need " + text(needed) +
         ", but ownership ends at " + text(t.revoke_at) +
         ": renew earlier, make the call deadline shorter or the transition longer");
}

void check_backoff(const Timing& t) {
  if (t.min_backoff <= t.max_backoff) return;
  refuse("the shortest backoff is " + text(t.min_backoff) + ", the longest " + text(t.max_backoff) +
         ": make the shortest shorter, or the longest longer");
}

void check_polls(const ContendOptions& o) {
  const bool never = o.safety_poll == milliseconds{0};
  if (!o.first_poll || !o.safety_poll || never || *o.first_poll <= *o.safety_poll) return;
  refuse("the first poll comes after " + text(*o.first_poll) + ", each later one after " +
         text(*o.safety_poll) + " at most: make the first shorter, or the safety poll longer");
}

}  // namespace

Timing Timing::of(const ContendOptions& o) {
  check_ranges(o);
  Timing t{};
  t.ttl = o.ttl;
  t.transition = o.transition;
  const nanoseconds lease = t.lease();
  t.grace = o.grace ? nanoseconds{*o.grace}
                    : std::min<nanoseconds>(std::chrono::seconds{1}, nanoseconds{o.transition} / 2);
  t.patience = std::max<nanoseconds>(t.grace, std::chrono::seconds{1});
  const nanoseconds guard = t.grace + std::max(kSmallestMargin, lease / 100);
  t.revoke_at = lease - guard;
  t.ttl_end = std::min<nanoseconds>(o.ttl, t.revoke_at);
  check_window(o, t);
  t.renew = duration_cast<nanoseconds>(t.ttl_end * o.renew_at);
  t.call_deadline = o.call_deadline ? nanoseconds{*o.call_deadline} : t.ttl_end / 8;
  t.max_backoff = o.max_backoff ? nanoseconds{*o.max_backoff} : t.ttl_end / 16;
  t.min_backoff = o.min_backoff ? nanoseconds{*o.min_backoff} : t.max_backoff / 16;
  check_backoff(t);
  check_polls(o);
  check_renewal(t);
  return t;
}

}  // namespace simba::inline v0
