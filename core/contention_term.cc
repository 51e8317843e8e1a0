// A term from its grant to its end, and when somebody who does not own asks next.
#include <algorithm>
#include <utility>

#include "core/contention.h"
#include "core/store_span.h"
#include "simba/contend_period.h"

namespace simba::core {
namespace {

constexpr milliseconds kPollWithPush{5000};
constexpr milliseconds kPollWithoutPush{1000};
constexpr nanoseconds kShortestWait = milliseconds{1};
constexpr milliseconds kLookAgain{50};  // at what was free, then twice as long each time
// A watchdog this late did not run: the process or the machine stood still.
constexpr nanoseconds kStoodStill = milliseconds{500};
// One grant may be short by bad luck; so many are the store's settings.
constexpr unsigned kNoLuck = 3;

}  // namespace

// Only my own reply makes me owner, and only while its lease runs.
bool Contention::is_granted(const Observation& seen) const {
  return seen.owner.is_owner(wire_id_) && seen.owner.token != 0 &&
         seen.owner.transition_at >= seen.now;
}

void Contention::hold(Effects& effects, const Observation& seen, LocalTime sent, LocalTime now) {
  term_ = TermTimes{seen.owner.token, now, sent, {}, {}};
  extend(seen, sent);
  if (now >= term_->ttl_end) {  // too late to be of use: given back, never adopted
    effects.retired.push_back({wire_id_, now + kMemory * timing_.lease()});
    term_.reset();
    useless_grants_ = used_for(seen) > nanoseconds{0} ? 0 : useless_grants_ + 1;
    effects.useless = useless_grants_ >= kNoLuck;
    begin_attempt(now + backoff());
    return;
  }
  useless_grants_ = 0;
  phase_ = Phase::kHolding;
  effects.began = true;
  note_owner(effects, seen.owner, wire_id_);
}

// R1: counted from before the request was sent; a store that granted less is taken at its word.
void Contention::extend(const Observation& seen, LocalTime sent) {
  TermTimes& term = *term_;
  term.sent = sent;
  term.revoke_at = sent + believed_for(seen);
  term.ttl_end = sent + used_for(seen);
  due_kind_ = CallKind::kRenew;
  due_ = renewal_after(sent);
}

// Where it meets those of others: never later than it has to be, and at most a quarter sooner. From
// then on it stays in step, so that this costs one early renewal in a term.
LocalTime Contention::renewal_after(LocalTime sent) const {
  const nanoseconds span = scaled(timing_.renew);
  const nanoseconds period = std::max(timing_.renew, nanoseconds{1});
  const LocalTime latest = sent + span;
  const auto quarters = 4 * (latest - rules_->renewals_meet_from) / period;
  const LocalTime meeting = rules_->renewals_meet_from + quarters * period / 4;
  return meeting >= sent + span * 3 / 4 ? meeting : latest;
}

nanoseconds Contention::believed_for(const Observation& seen) const {
  const nanoseconds granted = span_until(seen.owner.transition_at, seen.now);
  return timing_.revoke_at - std::max(nanoseconds{0}, timing_.lease() - granted);
}

nanoseconds Contention::used_for(const Observation& seen) const {
  const nanoseconds most = std::min(timing_.ttl_end, believed_for(seen));
  if (!seen.owner.ttl_at) return most;
  return std::min<nanoseconds>(most, span_until(*seen.owner.ttl_at, seen.now));
}

// A span of the owner's, shortened where the store granted less than was asked for.
nanoseconds Contention::scaled(nanoseconds span) const {
  const nanoseconds window = std::max(term_->ttl_end - term_->sent, nanoseconds{0});
  if (window >= timing_.ttl_end) return span;
  const double share =
      static_cast<double>(window.count()) / static_cast<double>(timing_.ttl_end.count());
  return nanoseconds{static_cast<nanoseconds::rep>(static_cast<double>(span.count()) * share)};
}

void Contention::answered_renewal(Effects& effects, const Observation& seen, LocalTime sent,
                                  LocalTime now) {
  if (is_granted(seen) && seen.owner.token == term_->token) {
    extend(seen, sent);
    if (tells_ && phase_ == Phase::kHolding) *owner_ = seen.owner;
    expire(effects, now);
    return;
  }
  const bool named = seen.owner.is_owner(wire_id_);
  const bool other_token = seen.owner.token != term_->token;
  Loss loss{LossReason::kSuperseded, seen.owner.id};
  if (seen.owner.id.empty()) loss.reason = LossReason::kForced;
  if (named && !other_token) loss = {LossReason::kExpired, {}};
  lose(effects, std::move(loss), seen.owner);
  leaves_trace_ = named && other_token;  // else the store has said that nothing there is ours
}

void Contention::expire(Effects& effects, LocalTime now) {
  const bool owns = phase_ == Phase::kHolding || phase_ == Phase::kEnding;
  if (owns && now >= term_->revoke_at) {
    lose(effects, {why_expired(now), {}}, MutexOwner::none());
  }
}

void Contention::lapse(Effects& effects) {
  const bool owns = phase_ == Phase::kHolding || phase_ == Phase::kEnding;
  if (owns) lose(effects, {LossReason::kExpired, {}}, MutexOwner::none());
  term_.reset();
}

LossReason Contention::why_expired(LocalTime now) const {
  if (now >= term_->revoke_at + kStoodStill) return LossReason::kClockJump;
  return failures_ > 0 || call_ ? LossReason::kUnreachable : LossReason::kExpired;
}

// The clean end: the term goes on, and is renewed, until the work has returned.
void Contention::end(Effects& effects, LocalTime now, nanoseconds patience) {
  phase_ = Phase::kEnding;
  grace_end_ = now + patience;
  effects.ended = Loss{LossReason::kReleased, {}};
  note_owner(effects, MutexOwner::none(), wire_id_);
}

// The term is dead. It is released by its id, but only once the work has returned.
void Contention::lose(Effects& effects, Loss loss, const MutexOwner& after) {
  const bool told = phase_ == Phase::kEnding;
  phase_ = Phase::kDraining;
  due_ = kNever;
  if (call_) call_->stale = true;
  leaves_trace_ = true;
  if (loss.reason != LossReason::kAbandoned) term_.reset();
  effects.ended = std::move(loss);
  if (told) return;
  note_owner(effects, after.is_owner(wire_id_) ? MutexOwner::none() : after, wire_id_);
}

void Contention::after_term(Effects& effects, LocalTime now) {
  effects.former = std::exchange(wire_id_, {});
  if (stop_ || goal_ == Goal::kOnce) {
    phase_ = Phase::kIdle;
    due_ = kNever;
    grace_end_ = kNever;
    effects.over = true;
    return;
  }
  const bool gave_way =
      phase_ == Phase::kReleasing;  // the maximum hold time: let others have a turn
  grace_end_ = kNever;
  begin_attempt(gave_way ? now + turn_of_others() : now);
}

// As long as it takes until others have seen that it is free.
milliseconds Contention::turn_of_others() const {
  const milliseconds jitter = std::max(options_.jitter.to, milliseconds{0});
  if (pushed_) return jitter;
  return jitter +
         (poll() > milliseconds{0} ? std::min(poll(), kPollWithoutPush) : kPollWithoutPush);
}

// When to ask next, for somebody who does not own.
void Contention::wait(const Observation& seen, LocalTime now) {
  const bool polls = poll() > milliseconds{0};
  const LocalTime poll_at = polls ? now + pause() : kNever;
  if (goal_ == Goal::kObserve) {
    const nanoseconds ends = span_until(seen.owner.transition_at, seen.now) + milliseconds{1};
    due_kind_ = CallKind::kObserve;
    due_ = std::min(poll_at, now + std::max(ends, kShortestWait));
    free_looks_ = seen.is_free() ? free_looks_ + 1 : 0;
    // The next owner is often near, and that somebody took it is told to nobody.
    if (seen.is_free()) due_ = polls ? now + std::min(free_pause(), poll()) : kNever;
    return;
  }
  due_kind_ = CallKind::kTake;
  due_ = now;
  if (seen.is_free() || seen.owner.is_owner(wire_id_)) return;
  // Not at each answer: thousands who wait for one mutex share every answer about it.
  if (!jitter_) jitter_ = executor_.random();
  const nanoseconds delay =
      ContendPeriod::contender_delay(seen.owner, seen.now, options_.jitter, *jitter_);
  due_ = now + std::max(delay, kShortestWait);
  if (poll_at < due_) {
    due_kind_ = queues_ ? CallKind::kTake : CallKind::kObserve;
    due_ = poll_at;
  }
}

// Who shares another's question may hear of what was before that which it knows already. The clock
// of the store does not tell: it may have been set back in between.
bool Contention::is_old_news(LocalTime sent) const { return sent < heard_at_; }

// R3: an observation that names this attempt (a claim whose answer was lost got through) makes
// nobody owner. The next claim will be told.
void Contention::note_other(Effects& effects, const Observation& seen) {
  if (seen.owner.is_owner(wire_id_)) return;
  note_owner(effects, seen.is_free() ? MutexOwner::none() : seen.owner, wire_id_);
}

milliseconds Contention::poll() const {
  const milliseconds usual = pushed_ ? kPollWithPush : kPollWithoutPush;
  const milliseconds poll = options_.safety_poll.value_or(usual);
  const bool blind = goal_ == Goal::kObserve && !pushed_;
  return blind && poll == milliseconds{0} ? kPollWithoutPush : poll;
}

// How long a waiter leaves the store alone. Without hints it may be told to begin with less.
nanoseconds Contention::pause() const {
  const bool backs_off = options_.first_poll && !pushed_ && goal_ != Goal::kObserve;
  return backs_off ? std::min<nanoseconds>(pause_, poll()) : poll();
}

// At each answer of its own, not at what it overhears, for the reason given at jitter_.
void Contention::draw_pause() {
  if (!options_.first_poll || goal_ == Goal::kObserve) return;
  pause_ = *options_.first_poll;
  for (unsigned refusal = 0; refusal < refusals_ && pause_ < poll(); ++refusal) pause_ *= 2;
  ++refusals_;
  const auto most = std::max<std::int64_t>(nanoseconds{options_.jitter.to}.count(), 0);
  if (most > 0) {
    pause_ += nanoseconds{executor_.random() % static_cast<std::uint64_t>(most)};
  }
}

void Contention::note_owner(Effects& effects, const MutexOwner& owner, const std::string& self) {
  if (!tells_) return;
  if (!owner_) owner_ = std::make_unique<MutexOwner>(MutexOwner::none());
  if (owner_->id == owner.id) {  // most answers change nothing
    *owner_ = owner;
    return;
  }
  MutexState change;
  change.before = std::exchange(*owner_, owner);
  change.after = owner;
  change.self = self;
  if (effects.ended) change.loss = *effects.ended;
  effects.change = std::move(change);
}

milliseconds Contention::free_pause() const {
  return kLookAgain * (1 << std::min(free_looks_ - 1, 10U));
}

bool Contention::is_queued() const { return queues_ && goal_ != Goal::kObserve && has_answer_; }

nanoseconds Contention::backoff() {
  const nanoseconds most = term_ ? scaled(timing_.max_backoff) : timing_.max_backoff;
  const nanoseconds least = term_ ? scaled(timing_.min_backoff) : timing_.min_backoff;
  nanoseconds longest = 2 * least;
  for (unsigned failure = 1; failure < failures_ && longest < most; ++failure) longest *= 2;
  longest = std::min(longest, most);
  const auto half = static_cast<std::uint64_t>(std::max<nanoseconds::rep>(longest.count() / 2, 1));
  return nanoseconds{static_cast<nanoseconds::rep>(half + executor_.random() % half)};
}

}  // namespace simba::core
