// What follows from a decision of a machine: under the lock, with the rest left in the outbox.
#include <algorithm>
#include <utility>

#include "core/engine.h"
#include "core/flight.h"
#include "core/outbox.h"

namespace simba::core {
namespace {

constexpr milliseconds kLinger{100};

}  // namespace

void Engine::apply_and_submit(Enrolled& who, Effects&& effects, Outbox& out) {
  if (std::optional<Ask> ask = apply(who, std::move(effects), out))
    submit(who, std::move(*ask), out);
}

std::optional<Ask> Engine::apply(Enrolled& who, Effects&& effects, Outbox& out) {
  publish_term(who, effects, out);
  if (effects.change) tell(who, std::move(*effects.change), out);
  for (Retired& retired : effects.retired) {
    const Timing& timing = who.machine.timing();
    retired_.add({who.mutex(), std::move(retired.wire_id), retired.until, timing.call_deadline,
                  timing.max_backoff},
                 out.now);
  }
  if (!effects.former.empty()) {
    Group& group = *who.group;
    group.former[group.next_former++ % group.former.size()] = std::move(effects.former);
  }
  place_in_line(who, effects.began, out);
  const bool matters = effects.began || effects.ended || effects.over;
  if (matters && &who != out.caller && who.poke && who.self_) out.poked.push_back(who.self_);
  if (effects.over) {
    ++who.lives;
    who.left_work = who.machine.left_work();
    deactivate(who, out);
  } else if (who.self_) {
    deadlines_.set(who, who.machine.next_timer());
    refresh_own_watch(who, out);
  }
  return std::move(effects.ask);
}

// What the machine believes and what users can read change in one step, before anything is sent.
void Engine::publish_term(Enrolled& who, Effects& effects, Outbox& out) {
  const std::optional<TermTimes>& times = who.machine.term();
  if (effects.began) {
    who.term =
        std::make_shared<TermRecord>(executor_, who.mutex(), who.machine.wire_id(), times->token);
    who.group->highest = std::max(who.group->highest, times->token);
    event(out, Event::Kind::kAcquired, who);
  }
  if (!who.term) return;
  if (times && !who.term->extend(times->ttl_end, times->revoke_at)) who.machine.lapse(effects);
  if (!times) who.term->end();
  if (effects.ended) {
    if (who.term->set_loss(*effects.ended)) out.revoked.push_back(who.term);
    if (effects.ended->reason == LossReason::kAbandoned) keep_in_sight(who.term);
    const bool wanted = effects.ended->reason == LossReason::kReleased;
    event(out, wanted ? Event::Kind::kReleased : Event::Kind::kRevoked, who, effects.ended->reason);
  }
}

void Engine::keep_in_sight(const std::shared_ptr<TermRecord>& abandoned) {
  std::erase_if(abandoned_, [](const auto& term) { return term.expired(); });
  abandoned_.push_back(abandoned);
}

void Engine::tell(Enrolled& who, MutexState change, Outbox& out) {
  if (!who.audience) return;
  if (change.is_acquired() || change.is_released()) change.term = Term(who.term);
  who.audience->state = change;
  if (who.audience->strand.push(std::move(change))) out.strands.push_back(who.shared_from_this());
}

void Engine::activate(Enrolled& who) {
  if (who.self_) return;
  who.self_ = who.shared_from_this();
  who.trouble.reset();
  if (who.audience) who.audience->state = MutexState::none();  // it knows nothing yet
  ++active_;
  who.member_at_ = who.group->members.join(who);
}

void Engine::deactivate(Enrolled& who, Outbox& out) {
  if (!who.self_) return;
  --active_;
  settled_.notify_all();
  deadlines_.remove(who);
  who.group->members.leave(who.member_at_);
  if (who.wants_hints_) {
    who.wants_hints_ = false;
    if (--who.group->watching == 0 && who.group->watch) {
      keep_for_the_next(who.group, out);
    }
  }
  if (who.own_watch_) out.dropped.push_back(std::move(who.own_watch_));
  who.watched_attempt_ = 0;
  // The last reference may go when the lock is gone.
  if (&who == out.caller) {
    who.self_.reset();  // the caller has one
  } else {
    out.poked.push_back(std::move(who.self_));
  }
}

// Two who hand a mutex to and fro come back for hints at once: to make and drop a watch each time
// costs more than the rest.
void Engine::keep_for_the_next(const std::shared_ptr<Group>& group, Outbox& out) {
  if (is_closed_) {
    out.dropped.push_back(std::move(group->watch));
    return;
  }
  group->watch->need_reader(false);
  group->unwatched_at = out.now;
  if (std::exchange(group->lingers, true)) return;
  lingering_.push_back({group, out.now + kLinger});
}

void Engine::drop_unused_watches(Outbox& out) {
  while (!lingering_.empty() && lingering_.front().until <= out.now) {
    const std::shared_ptr<Group> group = std::move(lingering_.front().group);
    lingering_.pop_front();
    const LocalTime until = group->unwatched_at + kLinger;
    group->lingers = group->watching == 0 && until > out.now;  // it was wanted meanwhile
    if (group->lingers) {
      lingering_.push_back({group, until});
    } else if (group->watching == 0 && group->watch) {
      out.dropped.push_back(std::move(group->watch));
    }
  }
}

// Who waits stands in line; who leaves the line without the mutex passes a hint on.
void Engine::place_in_line(Enrolled& who, bool began, Outbox& out) {
  const bool waits = who.machine.is_waiting();
  if (waits == who.is_waiter_) return;
  Group& group = *who.group;
  who.is_waiter_ = waits;
  if (waits) {
    who.waiter_at_ = group.waiters.join(who);
    return;
  }
  const bool was_first = group.waiters.front() == &who;
  group.waiters.leave(who.waiter_at_);
  // Not here: thousands may leave at once, each as the first.
  if (was_first && !began) out.bereft.push_back(who.group);
}

void Engine::submit(Enrolled& who, Ask ask, Outbox& out) {
  Group& group = *who.group;
  if (ask.kind == CallKind::kObserve) {
    if (out.now < group.polled_until) {
      group.riders.emplace_back(who.self_, ask.number);
      return;
    }
    group.polled_until = ask.deadline + Batcher::kOverdue;
  }
  const Timing& timing = who.machine.timing();
  batcher_.add({ask.kind, who.mutex(), std::move(ask.wire_id), ask.token, group.highest, timing.ttl,
                timing.transition, ask.deadline, out.now, who.self_, ask.number});
}

void Engine::give_back(const Farewell& farewell, Outbox& out) {
  batcher_.add({CallKind::kRelease,
                farewell.mutex,
                farewell.wire_id,
                0,
                0,
                {},
                {},
                out.now + farewell.call_deadline,
                out.now,
                nullptr,
                0});
}

void Engine::wake_bereft(Outbox& out) {
  while (!out.bereft.empty()) {
    const std::shared_ptr<Group> group = std::move(out.bereft.back());
    out.bereft.pop_back();
    wake_first(*group, out);
  }
}

void Engine::launch(Outbox& out) {
  wake_bereft(out);
  for (const Farewell& farewell : retired_.due(out.now)) give_back(farewell, out);
  while (std::optional<Batch> batch = batcher_.next(out.now)) {
    drop_unwanted(*batch, out);
    wake_bereft(out);  // who was held up by what is dropped may leave now
    if (batch->jobs.empty()) {
      batcher_.succeeded(*batch);
      continue;
    }
    hand_out(std::make_shared<Flight>(shared_from_this(), std::move(*batch)), out);
  }
  put_off_events(out);
  set_alarm();
}

void Engine::hand_out(std::shared_ptr<Flight> flight, Outbox& out) {
  const std::shared_ptr<Enrolled>& first = flight->batch.jobs.front().who;
  const bool asks_alone = flight->batch.lane == Lane::kAsk && flight->batch.jobs.size() == 1;
  if (asks_alone && first->makes_calls_ && !first->handed_) {
    out.poked.push_back(first);
    first->handed_ = std::move(flight);
  } else {
    out.flights.push_back(std::move(flight));
  }
}

// Nobody waits for these any more, or nothing is left to give back. A poll may have been joined by
// others.
void Engine::drop_unwanted(Batch& batch, Outbox& out) {
  if (batch.kind == CallKind::kObserve) return;
  std::erase_if(batch.jobs, [&](Job& job) {
    if (!job.who) return !retired_.sent(job.wire_id, out.now);
    if (job.who->machine.awaits(job.number)) return false;
    // It may want the mutex again already, and holds back until it hears of this.
    Enrolled& who = *job.who;
    apply_and_submit(who, who.machine.failed(job.number, Errc::kTimeout, out.now), out);
    out.let_go.push_back(std::move(job.who));
    return true;
  });
}

// An alarm that comes too early costs one look; it is not worth a system call to take it back.
void Engine::set_alarm() {
  const LocalTime soonest =
      std::min({deadlines_.soonest(), batcher_.next_timer(), retired_.next_timer(),
                lingering_.empty() ? LocalTime::max() : lingering_.front().until});
  if (soonest >= alarm_) return;
  alarm_ = soonest;
  // Under the lock: whoever comes next relies on it.
  executor_->set_alarm(soonest);
}

// P4: the hook is user code and may block, and no deadline waits for it. So a thread of callbacks
// tells of what the dispatcher did, and of what happens to the same mutex until it has: nothing
// overtakes it. Others are not put off, so that who makes many events waits for the hook himself.
void Engine::put_off_events(Outbox& out) {
  if (!on_event_ || out.events.empty()) return;
  for (OwnedEvent& owned : out.events) {
    owned.is_put_off = out.on_dispatcher || (owned.group && owned.group->untold > 0);
  }
  for (const OwnedEvent& owned : out.events) {
    if (!owned.is_put_off) continue;
    if (owned.group) ++owned.group->untold;
    untold_.push_back(owned);
  }
  out.tells_later = !untold_.empty() && !std::exchange(is_telling_, true);
}

void Engine::event(Outbox& out, Event::Kind kind, const Enrolled& who, LossReason reason,
                   const Error* error) {
  if (!is_heard()) return;
  Event event;
  event.kind = kind;
  event.token = who.term ? who.term->token : 0;
  event.reason = reason;
  out.events.push_back({event, who.group, who.term ? who.term->wire_id : who.machine.wire_id(),
                        error ? std::optional<Error>(*error) : std::nullopt});
}

}  // namespace simba::core
