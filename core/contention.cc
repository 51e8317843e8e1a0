#include "core/contention.h"

#include <algorithm>
#include <utility>

#include "core/store_span.h"
#include "simba/contend_period.h"
#include "simba/contender_id.h"

namespace simba::core {
namespace {

constexpr LocalTime kNever = LocalTime::max();
constexpr milliseconds kPollWithPush{5000};
constexpr milliseconds kPollWithoutPush{1000};
constexpr nanoseconds kShortestWait = milliseconds{1};
constexpr milliseconds kLookAgain{50};  // at what was free, then twice as long each time
// A retired id is remembered for this many leases: a claim may be late by one, and last another.
constexpr int kMemory = 2;
// A watchdog this late did not run: the process or the machine stood still.
constexpr nanoseconds kStoodStill = milliseconds{500};
// One grant may be short by bad luck; so many are the store's settings.
constexpr unsigned kNoLuck = 3;

}  // namespace

Contention::Contention(std::string label, std::shared_ptr<const Rules> rules, bool queues,
                       Executor& executor)
    : label_(std::move(label)), rules_(std::move(rules)), queues_(queues), executor_(executor) {}

// --- events
// ---------------------------------------------------------------------------------------

Effects Contention::start(Goal goal, LocalTime now, LocalTime give_up_at) {
  goal_ = goal;
  give_up_at_ = give_up_at;
  stop_ = left_work_ = has_answer_ = false;
  grace_end_ = kNever;
  owner_.reset();
  heard_at_ = LocalTime{};
  if (call_) call_->stale = true;
  // Who asks for a lock is ready for it.
  begin_attempt(goal == Goal::kOnce ? now : now + options_.initial_delay);
  Effects effects;
  drive(effects, now);
  return effects;
}

Effects Contention::stop(LocalTime now, nanoseconds patience) {
  Effects effects;
  expire(effects, now);
  if (phase_ == Phase::kIdle || stop_) return effects;
  stop_ = true;
  if (phase_ == Phase::kHolding) {
    end(effects, now, patience);
  } else if (phase_ == Phase::kDraining || phase_ == Phase::kEnding) {
    grace_end_ = now + patience;
  } else if (phase_ == Phase::kTrying && call_ && !call_->stale) {
    phase_ = Phase::kStopping;
    due_ = kNever;
  } else if (phase_ == Phase::kTrying) {
    end_attempt(effects, now);
  }
  drive(effects, now);
  return effects;
}

Effects Contention::give_up(LocalTime now) {
  Effects effects;
  if (phase_ == Phase::kTrying) abandon_attempt(effects, now);
  return effects;
}

Effects Contention::work_done(const std::string& wire_id, LocalTime now) {
  Effects effects;
  expire(effects, now);
  if (wire_id != wire_id_) return effects;  // of a term that was abandoned long ago
  if (phase_ == Phase::kEnding) {
    term_.reset();  // before the store is told: from here on the next owner may enter
    phase_ = Phase::kReleasing;
    if (call_) call_->stale = true;
    due_kind_ = CallKind::kRelease;
    due_ = now;
  } else if (phase_ == Phase::kDraining) {
    term_.reset();  // an abandoned one: its id may be given back from here on
    if (leaves_trace_) effects.retired.push_back({wire_id_, now + kMemory * timing_.lease()});
    after_term(effects, now);
  }
  drive(effects, now);
  return effects;
}

Effects Contention::renew(LocalTime now) {
  Effects effects;
  expire(effects, now);
  if (phase_ == Phase::kHolding && !call_) {
    due_kind_ = CallKind::kRenew;
    due_ = now;
  }
  drive(effects, now);
  return effects;
}

Effects Contention::wake(LocalTime now) {
  Effects effects;
  if (phase_ == Phase::kTrying && has_asked_) {
    if (call_) {
      woken_ = true;
    } else if (due_ > now) {
      due_kind_ = goal_ == Goal::kObserve ? CallKind::kObserve : CallKind::kTake;
      due_ = now;
    }
  }
  drive(effects, now);
  return effects;
}

Effects Contention::timer(LocalTime now) {
  Effects effects;
  drive(effects, now);
  return effects;
}

Effects Contention::answered(std::uint64_t number, const Observation& seen, LocalTime sent,
                             LocalTime now) {
  Effects effects;
  expire(effects, now);
  if (!call_ || call_->number != number) return effects;
  const Call call = *call_;
  call_.reset();
  if (!call.stale) {
    has_answer_ = true;
    failures_ = 0;
    switch (phase_) {
      case Phase::kTrying:
        answered_try(effects, call.kind, seen, sent, now);
        break;
      case Phase::kStopping:
        if (is_granted(seen)) leaves_trace_ = true;
        end_attempt(effects, now);
        break;
      case Phase::kHolding:
      case Phase::kEnding:
        answered_renewal(effects, seen, sent, now);
        break;
      case Phase::kReleasing:
        after_term(effects, now);
        break;
      case Phase::kIdle:
      case Phase::kDraining:
        break;
    }
  }
  drive(effects, now);
  return effects;
}

Effects Contention::passed_over(std::uint64_t number, LocalTime now) {
  Effects effects;
  if (!awaits(number) || phase_ != Phase::kTrying) return effects;
  call_.reset();
  has_answer_ = true;
  failures_ = 0;
  due_kind_ = CallKind::kObserve;
  due_ = woken_ ? now : now + poll();
  drive(effects, now);
  return effects;
}

Effects Contention::failed(std::uint64_t number, Errc code, LocalTime now) {
  Effects effects;
  expire(effects, now);
  if (!call_ || call_->number != number) return effects;
  fail(effects, code, now);
  drive(effects, now);
  return effects;
}

// What it knows of the new store, if anything, is given back like any other trace.
Effects Contention::replaced(LocalTime now) {
  Effects effects;
  if (phase_ == Phase::kHolding || phase_ == Phase::kEnding) {
    lose(effects, {LossReason::kReplaced, {}}, MutexOwner::none());
  }
  drive(effects, now);
  return effects;
}

Effects Contention::overheard(const Observation& seen, LocalTime sent, LocalTime now) {
  Effects effects;
  if (phase_ != Phase::kTrying || call_ || is_old_news(sent)) return effects;
  heard_at_ = now;
  note_other(effects, seen);
  // Still before its first question: it has to be asked, whatever others heard.
  if (has_answer_) wait(seen, now);
  drive(effects, now);
  return effects;
}

LocalTime Contention::next_timer() const {
  LocalTime at = call_ ? call_->overdue : due_;
  if (phase_ == Phase::kHolding || phase_ == Phase::kEnding) {
    at = std::min(at, term_->revoke_at);
    if (options_.max_hold > milliseconds{0} && phase_ == Phase::kHolding) {
      at = std::min(at, term_->began + options_.max_hold);
    }
  }
  if (phase_ == Phase::kTrying) at = std::min(at, give_up_at_);
  return phase_ == Phase::kIdle && !call_ ? kNever : std::min(at, grace_end_);
}

// --- what follows from an event
// -------------------------------------------------------------------

// Whatever is due by now, in the order in which it matters: first what must not be believed any
// more.
void Contention::drive(Effects& effects, LocalTime now) {
  expire(effects, now);
  if (phase_ == Phase::kHolding && options_.max_hold > milliseconds{0} &&
      now >= term_->began + options_.max_hold) {
    end(effects, now, timing_.patience);
  }
  if (now >= grace_end_) {
    grace_end_ = kNever;
    if (phase_ == Phase::kEnding) {
      lose(effects, {LossReason::kAbandoned, {}}, MutexOwner::none());
      leaves_trace_ = false;  // nothing is released: the work still runs, so the lease runs out
    }
    if (phase_ == Phase::kDraining && stop_) {
      left_work_ = true;
      phase_ = Phase::kIdle;
      effects.over = true;
    }
  }
  if (call_ && now >= call_->overdue) fail(effects, Errc::kTimeout, now);
  if (phase_ == Phase::kTrying && now >= give_up_at_) abandon_attempt(effects, now);
  if (!call_ && due_ <= now) issue(effects, now);
}

void Contention::abandon_attempt(Effects& effects, LocalTime now) {
  const bool under_way = call_ && !call_->stale && call_->kind == CallKind::kTake;
  if (under_way || leaves_trace_ || is_queued()) {
    effects.retired.push_back({wire_id_, now + kMemory * timing_.lease()});
  }
  if (call_) call_->stale = true;
  phase_ = Phase::kIdle;
  due_ = kNever;
  effects.former = wire_id_;
  effects.over = true;
}

// The call under way brought no answer.
void Contention::fail(Effects& effects, Errc code, LocalTime now) {
  const Call call = *std::exchange(call_, std::nullopt);
  if (call.stale) return;
  ++failures_;
  if (call.kind == CallKind::kTake) leaves_trace_ = true;
  if (phase_ == Phase::kStopping) {
    end_attempt(effects, now);
  } else if (phase_ == Phase::kReleasing) {
    effects.retired.push_back({wire_id_, now + kMemory * timing_.lease()});
    after_term(effects, now);
  } else if (term_ && code == Errc::kReplaced) {
    lose(effects, {LossReason::kReplaced, {}}, MutexOwner::none());
    leaves_trace_ = false;  // the new store never heard of it
  } else {
    due_ = now + backoff();
  }
}

void Contention::issue(Effects& effects, LocalTime now) {
  Ask ask{due_kind_, ++last_number_, {}, 0, now + timing_.call_deadline};
  if (due_kind_ != CallKind::kObserve) ask.wire_id = wire_id_;
  if (due_kind_ == CallKind::kRenew) {
    ask.token = term_->token;
    ask.deadline = std::min(now + scaled(timing_.call_deadline), term_->revoke_at);
  }
  // A call that outlives its deadline twice over is hanging in the driver; it is not waited for.
  call_ = Call{due_kind_, ask.number, ask.deadline + timing_.call_deadline};
  due_ = kNever;
  woken_ = false;
  has_asked_ = true;
  effects.ask = std::move(ask);
}

void Contention::begin_attempt(LocalTime due) {
  phase_ = Phase::kTrying;
  term_.reset();
  ++attempt_;
  wire_id_.clear();
  if (goal_ != Goal::kObserve) {
    const std::uint64_t random = executor_.random();
    wire_id_ = make_wire_id(label_, random, is_uuid_label(label_) ? executor_.random() : 0);
  }
  leaves_trace_ = false;
  has_asked_ = false;
  woken_ = false;
  failures_ = 0;
  jitter_.reset();
  due_kind_ = goal_ == Goal::kObserve ? CallKind::kObserve : CallKind::kTake;
  due_ = due;
}

// A stop during an attempt: what it may have left in the store is taken back before it is over.
void Contention::end_attempt(Effects& effects, LocalTime now) {
  if (leaves_trace_ || is_queued()) {
    phase_ = Phase::kReleasing;
    due_kind_ = CallKind::kRelease;
    due_ = now;
    return;
  }
  after_term(effects, now);
}

void Contention::answered_try(Effects& effects, CallKind kind, const Observation& seen,
                              LocalTime sent, LocalTime now) {
  if (kind == CallKind::kTake && is_granted(seen)) {
    hold(effects, seen, sent, now);
    return;
  }
  if (!is_old_news(sent)) {
    heard_at_ = now;
    note_other(effects, seen);
  }
  if (kind == CallKind::kTake) jitter_.reset();  // too early: not at the same place again
  wait(seen, now);
  if (woken_) {
    due_kind_ = goal_ == Goal::kObserve ? CallKind::kObserve : CallKind::kTake;
    due_ = now;
  } else if (kind == CallKind::kTake && due_ <= now) {
    due_ =
        now + backoff();  // a store that neither grants nor names an owner is not asked in a loop
  }
}

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
  due_ = sent + scaled(timing_.renew);
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
  const LocalTime poll_at = polls ? now + poll() : kNever;
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
