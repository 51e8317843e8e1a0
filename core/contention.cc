// The events, and an attempt from its first claim until it is given up. What a term is, and how
// long to wait for one, is in contention_term.cc.
#include "core/contention.h"

#include <algorithm>
#include <utility>

#include "simba/contender_id.h"

namespace simba::core {

Contention::Contention(std::string label, std::shared_ptr<const Rules> rules, bool queues,
                       Executor& executor)
    : label_(std::move(label)), rules_(std::move(rules)), executor_(executor), queues_(queues) {}

// --- events
// ---------------------------------------------------------------------------------------

Effects Contention::start(Goal goal, LocalTime now, LocalTime give_up_at) {
  goal_ = goal;
  give_up_at_ = give_up_at;
  stop_ = left_work_ = has_answer_ = false;
  grace_end_ = stop_by_ = kNever;
  owner_.reset();
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
  stop_by_ = now + patience + timing_.call_deadline;
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
  due_ = woken_ ? now : now + pause();
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
  if (waits_for_store()) at = std::min(at, stop_by_);
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
  if (waits_for_store() && now >= stop_by_) abandon_attempt(effects, now);
  if (!call_ && due_ <= now) issue(effects, now);
}

// Whatever the store still has to say about it, nobody waits for it any longer.
void Contention::abandon_attempt(Effects& effects, LocalTime now) {
  const bool under_way = call_ && !call_->stale && call_->kind == CallKind::kTake;
  const bool releasing = phase_ == Phase::kReleasing;
  if (under_way || releasing || leaves_trace_ || is_queued()) {
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
  refusals_ = 0;
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
  draw_pause();
  wait(seen, now);
  if (woken_) {
    due_kind_ = goal_ == Goal::kObserve ? CallKind::kObserve : CallKind::kTake;
    due_ = now;
  } else if (kind == CallKind::kTake && due_ <= now) {
    due_ =
        now + backoff();  // a store that neither grants nor names an owner is not asked in a loop
  }
}

}  // namespace simba::core
