#include "core/engine.h"

#include <algorithm>
#include <utility>

#include "core/flight.h"
#include "core/fork.h"

namespace simba::core {
namespace {

using Phase = Contention::Phase;

struct OwnedEvent {
  Event event;
  std::string mutex, wire_id;
  std::optional<Error> error;
};

// False when the user's executor does not take it: then it is ours to run.
bool run_on(const HandleExecutor& executor, const std::function<void()>& task) noexcept {
  if (!executor) return false;
  try {
    executor(task);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

// What has to happen outside the lock, in this order.
struct Engine::Outbox {
  std::vector<std::shared_ptr<TermRecord>> revoked;
  std::vector<std::shared_ptr<Flight>> flights;
  std::vector<std::shared_ptr<Enrolled>> strands;
  std::vector<std::shared_ptr<Enrolled>> poked;
  std::vector<std::shared_ptr<Enrolled>> unwatched;  // want a watch under their new wire id
  std::vector<std::shared_ptr<Watch>> dropped;
  std::vector<OwnedEvent> events;
  std::optional<LocalTime> alarm;
  bool on_users_thread = false;      // stop requests may run here
  const Enrolled* caller = nullptr;  // looks for itself: not poked
  LocalTime now{};
};

Enrolled::Enrolled(Spec its_spec, std::shared_ptr<Group> its_group, const StoreTraits& traits,
                   Executor& executor)
    : spec(std::move(its_spec)),
      group(std::move(its_group)),
      machine(spec.label, spec.options, traits.queues_waiters, executor) {}

Engine::Engine(std::shared_ptr<Store> store, std::shared_ptr<Executor> executor, EventHook on_event)
    : store_(std::move(store)),
      executor_(std::move(executor)),
      on_event_(std::move(on_event)),
      fork_epoch_(fork_epoch()) {}

// Who is active holds itself; with the engine gone nobody else would let go.
Engine::~Engine() {
  for (const auto& [mutex, weak] : groups_) {
    const auto group = weak.lock();
    if (!group) continue;
    while (!group->members.empty()) {
      Enrolled& member = *group->members.front();
      group->members.pop_front();
      const auto last = std::move(member.self_);
    }
    group->riders.clear();
  }
}

std::uint64_t Engine::current_epoch() { return fork_epoch(); }

void Engine::open() {
  executor_->start([weak = weak_from_this()] {
    if (const auto engine = weak.lock()) engine->on_alarm();
  });
}

// --- what users ask for
// ---------------------------------------------------------------------------

std::shared_ptr<Enrolled> Engine::enroll(Spec spec) {
  store_->check_mutex(spec.mutex);
  if (spec.goal != Goal::kObserve) store_->check_label(spec.label);
  const std::lock_guard lock(guard_);
  forget_unused_groups();
  std::weak_ptr<Group>& slot = groups_[spec.mutex];
  std::shared_ptr<Group> group = slot.lock();
  if (!group) slot = group = std::make_shared<Group>(spec.mutex);
  return std::make_shared<Enrolled>(std::move(spec), std::move(group), store_->traits(),
                                    *executor_);
}

// A name per order must not grow the map for ever.
void Engine::forget_unused_groups() {
  if (groups_.size() < sweep_groups_at_) return;
  std::erase_if(groups_, [](const auto& group) { return group.second.expired(); });
  sweep_groups_at_ = std::max<std::size_t>(2 * groups_.size(), 64);
}

void Engine::start(const std::shared_ptr<Enrolled>& who, LocalTime give_up_at) {
  {
    const std::lock_guard lock(guard_);
    activate(*who);
  }
  want_hints(who);
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    apply_and_submit(*who, who->machine.start(who->spec.goal, out.now, give_up_at), out);
    launch(out);
  }
  flush(out);
}

Engine::Inline Engine::start_inline(const std::shared_ptr<Enrolled>& who, LocalTime deadline,
                                    IfRefused then) {
  Outbox out;
  std::optional<Ask> ask;
  Token floor = 0;
  bool refused = false;
  {
    const std::lock_guard lock(guard_);
    if (who->machine.phase() != Phase::kIdle) return Inline::kBusy;
    out.now = executor_->now();
    floor = who->group->highest;
    const bool in_line = who->group->waiters.empty();
    activate(*who);
    ask = apply(*who, who->machine.start(who->spec.goal, out.now), out);
    if (ask && !in_line) {
      submit(*who, *std::exchange(ask, std::nullopt), out);
    }
    launch(out);
  }
  flush(out);
  if (ask && fly_inline(who, std::move(*ask), floor, deadline) == Inline::kHeld) {
    return Inline::kHeld;
  }
  // Not granted at once: from now on hints matter, and what changed before them is asked for again.
  {
    const std::lock_guard lock(guard_);
    if (!who->machine.is_waiting()) return become(*who, executor_->now());
    refused = ask && !who->trouble;
  }
  if (refused && then == IfRefused::kGivesUp) {
    give_up(who);
    const std::lock_guard lock(guard_);
    return become(*who, executor_->now());  // it may have been granted just then
  }
  want_hints(who);
  Outbox again;
  {
    const std::lock_guard lock(guard_);
    again.now = executor_->now();
    // After an error its own pause decides.
    if (!who->trouble) apply_and_submit(*who, who->machine.wake(again.now), again);
    launch(again);
  }
  flush(again);
  return Inline::kOpen;
}

void Engine::stop(const std::shared_ptr<Enrolled>& who, std::optional<nanoseconds> patience) {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    who->strand.forget_others();
    const nanoseconds with_work = patience.value_or(who->machine.timing().patience);
    apply_and_submit(*who, who->machine.stop(out.now, with_work), out);
    launch(out);
  }
  flush(out);
}

void Engine::give_up(const std::shared_ptr<Enrolled>& who) {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    apply_and_submit(*who, who->machine.give_up(out.now), out);
    launch(out);
  }
  flush(out);
}

void Engine::finish(const std::shared_ptr<Enrolled>& who) {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    const std::string wire_id = who->machine.wire_id();
    apply_and_submit(*who, who->machine.stop(out.now), out);
    apply_and_submit(*who, who->machine.work_done(wire_id, out.now), out);
    launch(out);
  }
  flush(out);
}

Engine::Inline Engine::finish_inline(const std::shared_ptr<Enrolled>& who) {
  Outbox out;
  out.on_users_thread = true;
  out.caller = who.get();
  std::optional<Ask> ask;
  Inline came_to{};
  Token floor = 0;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    const std::string wire_id = who->machine.wire_id();
    apply_and_submit(*who, who->machine.stop(out.now), out);
    ask = apply(*who, who->machine.work_done(wire_id, out.now), out);
    came_to = become(*who, out.now);
    floor = who->group->highest;
    launch(out);
  }
  flush(out);
  if (!ask) return came_to;
  const LocalTime deadline = ask->deadline;
  return fly_inline(who, std::move(*ask), floor, deadline);
}

Engine::Inline Engine::fly_inline(const std::shared_ptr<Enrolled>& who, Ask ask, Token floor,
                                  LocalTime deadline) {
  Batch batch{lane_of(ask.kind), ask.kind, {}, std::min(ask.deadline, deadline), 0};
  const Timing& timing = who->machine.timing();
  batch.jobs.push_back({ask.kind,
                        who->spec.mutex,
                        std::move(ask.wire_id),
                        ask.token,
                        floor,
                        timing.ttl,
                        timing.transition,
                        ask.deadline,
                        {},
                        who,
                        ask.number});
  Flight flight(shared_from_this(), std::move(batch), Flight::Path::kInline);
  flight.send();
  flight.perform();
  flight.complete();
  return flight.came_to;
}

Engine::Inline Engine::become(const Enrolled& who, LocalTime now) {
  const Contention& machine = who.machine;
  if (machine.phase() == Phase::kIdle) return Inline::kOver;
  const bool held = machine.phase() == Phase::kHolding && now < machine.term()->ttl_end;
  return held ? Inline::kHeld : Inline::kOpen;
}

Engine::Snapshot Engine::snapshot(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return {who.machine.phase(),
          who.machine.has_answer(),
          who.machine.is_stopping(),
          who.machine.left_work(),
          who.strand.is_running(),
          who.term,
          who.trouble,
          who.state};
}

Phase Engine::phase(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return who.machine.phase();
}

std::shared_ptr<TermRecord> Engine::term(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return who.term;
}

void Engine::close(nanoseconds patience) {
  if (is_forked()) return;
  if (executor_->goes_on_by_itself()) {
    std::unique_lock lock(guard_);
    settled_.wait_for(lock, patience, [&] { return active_ == 0 && retired_.is_settled(); });
  }
  executor_->shut_down();
}

// --- what happens to it
// ---------------------------------------------------------------------------

void Engine::on_alarm() {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    alarm_ = LocalTime::max();
    while (Timed* timed = deadlines_.pop_due(out.now)) {
      auto& who = static_cast<Enrolled&>(*timed);
      apply_and_submit(who, who.machine.timer(out.now), out);
    }
    launch(out);
  }
  flush(out);
}

void Engine::on_hint(const std::weak_ptr<Group>& weak) {
  const auto group = weak.lock();
  if (!group) return;
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    wake_first(*group, out);
    for (Enrolled* member : group->members) {
      if (member->spec.goal == Goal::kObserve) {
        apply_and_submit(*member, member->machine.wake(out.now), out);
      }
    }
    launch(out);
  }
  flush(out);
}

void Engine::on_own_hint(const std::weak_ptr<Enrolled>& weak) {
  const auto who = weak.lock();
  if (!who) return;
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    if (who->self_) apply_and_submit(*who, who->machine.wake(out.now), out);
    launch(out);
  }
  flush(out);
}

void Engine::completed(Flight& flight) {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    if (on_event_) {
      Event called;
      called.kind = Event::Kind::kCalled;
      called.duration = out.now - flight.sent;
      called.claims = flight.batch.jobs.size();
      out.events.push_back({called, {}, {}, flight.error});
    }
    const bool batched = flight.path == Flight::Path::kBatcher;
    if (!batched) out.caller = flight.batch.jobs.front().who.get();
    if (!flight.error) {
      if (batched) batcher_.succeeded(flight.batch);
      for (std::size_t i = 0; i < flight.batch.jobs.size(); ++i) {
        deliver(flight.batch.jobs[i], flight.answers[i], flight.sent, out);
      }
    } else if (batched && flight.batch.jobs.size() > 1 && !flight.error->is_transient()) {
      batcher_.split(flight.batch);
    } else {
      if (batched) batcher_.failed(flight.batch);
      for (const Job& job : flight.batch.jobs) deliver(job, *flight.error, flight.sent, out);
    }
    if (!batched) flight.came_to = become(*out.caller, out.now);
    launch(out);
  }
  flush(out);
}

// User code runs here: in order, one at a time, outside the lock.
void Engine::run_strand(const std::shared_ptr<Enrolled>& who) {
  while (true) {
    std::optional<Strand::Notice> notice;
    {
      const std::lock_guard lock(guard_);
      notice = who->strand.next();
    }
    if (!notice) {
      if (who->spec.poke) who->spec.poke();  // somebody may wait for the strand to be idle
      return;
    }
    if (!notice->silent) who->spec.notify(notice->state);
    if (!notice->state.is_released()) continue;
    Outbox out;
    {
      const std::lock_guard lock(guard_);
      out.now = executor_->now();
      apply_and_submit(*who, who->machine.work_done(notice->state.self, out.now), out);
      launch(out);
    }
    flush(out);
  }
}

// --- under the lock
// -------------------------------------------------------------------------------

void Engine::apply_and_submit(Enrolled& who, Effects effects, Outbox& out) {
  if (std::optional<Ask> ask = apply(who, std::move(effects), out))
    submit(who, std::move(*ask), out);
}

std::optional<Ask> Engine::apply(Enrolled& who, Effects effects, Outbox& out) {
  publish_term(who, effects, out);
  if (effects.change) tell(who, std::move(*effects.change), out);
  for (Retired& retired : effects.retired) {
    const Timing& timing = who.machine.timing();
    retired_.add({who.spec.mutex, std::move(retired.wire_id), retired.until, timing.call_deadline,
                  timing.max_backoff},
                 out.now);
  }
  if (!effects.former.empty()) {
    Group& group = *who.group;
    group.former[group.next_former++ % group.former.size()] = std::move(effects.former);
  }
  place_in_line(who, effects.began, out);
  const bool matters = effects.began || effects.ended || effects.over;
  if (matters && who.spec.poke && who.self_) out.poked.push_back(who.self_);
  if (effects.over) {
    deactivate(who, out);
  } else if (who.self_) {
    deadlines_.set(who, who.machine.next_timer());
    refresh_own_watch(who, out);
  }
  return std::move(effects.ask);
}

// What the machine believes and what users can read change in one step, before anything is sent.
void Engine::publish_term(Enrolled& who, const Effects& effects, Outbox& out) {
  const std::optional<TermTimes>& times = who.machine.term();
  if (effects.began) {
    who.term =
        std::make_shared<TermRecord>(executor_, who.spec.mutex, times->wire_id, times->token);
    who.group->highest = std::max(who.group->highest, times->token);
    event(out, Event::Kind::kAcquired, who);
  }
  if (!who.term) return;
  const bool runs = times && times->wire_id == who.term->wire_id;
  const LocalTime ttl_end = runs ? times->ttl_end : LocalTime::min();
  const LocalTime revoke_at = runs ? times->revoke_at : LocalTime::min();
  if (effects.began || ttl_end != who.shown_ttl_end_ || revoke_at != who.shown_revoke_at_) {
    who.term->extend(who.shown_ttl_end_ = ttl_end, who.shown_revoke_at_ = revoke_at);
  }
  if (effects.ended) {
    who.term->set_loss(*effects.ended);
    out.revoked.push_back(who.term);
    const bool wanted = effects.ended->reason == LossReason::kReleased;
    event(out, wanted ? Event::Kind::kReleased : Event::Kind::kRevoked, who, effects.ended->reason);
  }
}

void Engine::tell(Enrolled& who, MutexState change, Outbox& out) {
  if (!who.spec.notify) return;
  if (change.is_acquired() || change.is_released()) change.term = Term(who.term);
  who.state = change;
  if (who.strand.push(std::move(change))) out.strands.push_back(who.shared_from_this());
}

void Engine::activate(Enrolled& who) {
  if (who.self_) return;
  who.self_ = who.shared_from_this();
  ++active_;
  who.member_at_ = who.group->members.insert(who.group->members.end(), &who);
}

void Engine::deactivate(Enrolled& who, Outbox& out) {
  if (!who.self_) return;
  --active_;
  settled_.notify_all();
  deadlines_.remove(who);
  who.group->members.erase(who.member_at_);
  if (who.wants_hints_) {
    who.wants_hints_ = false;
    if (--who.group->watching == 0 && who.group->watch) {
      out.dropped.push_back(std::move(who.group->watch));
    }
  }
  if (who.own_watch_) out.dropped.push_back(std::move(who.own_watch_));
  who.own_watch_id_.clear();
  out.poked.push_back(std::move(who.self_));  // the last reference may go when the lock is gone
}

// Who waits stands in line; who leaves the line without the mutex passes a hint on.
void Engine::place_in_line(Enrolled& who, bool began, Outbox& out) {
  const bool waits = who.machine.is_waiting();
  if (waits == who.is_waiter_) return;
  Group& group = *who.group;
  who.is_waiter_ = waits;
  if (waits) {
    who.waiter_at_ = group.waiters.insert(group.waiters.end(), &who);
    return;
  }
  const bool was_first = group.waiters.front() == &who;
  group.waiters.erase(who.waiter_at_);
  if (was_first && !began) wake_first(group, out);
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
  batcher_.add({ask.kind, who.spec.mutex, std::move(ask.wire_id), ask.token, group.highest,
                timing.ttl, timing.transition, ask.deadline, out.now, who.self_, ask.number});
}

void Engine::deliver(const Job& job, const Answer& answer, LocalTime sent, Outbox& out) {
  static const Error blocked(Errc::kTimeout, "somebody else holds a lock on its row");
  const Error* error = std::get_if<Error>(&answer);
  if (std::holds_alternative<Blocked>(answer)) {
    batcher_.blocked(job.mutex);
    error = &blocked;
  } else {
    batcher_.unblocked(job.mutex);
  }
  if (!job.who) {  // a retired id
    if (error) {
      retired_.failed(job.wire_id, out.now);
      settled_.notify_all();
      return;
    }
    retired_.released(job.wire_id);
    if (const auto it = groups_.find(job.mutex); it != groups_.end()) {
      if (const auto group = it->second.lock()) wake_first(*group, out);
    }
    settled_.notify_all();
    return;
  }
  const Observation* seen = std::get_if<Observation>(&answer);
  if (job.kind == CallKind::kObserve) {
    deliver_to_riders(job, error, seen, sent, out);
  } else if (error) {
    deliver_failure(*job.who, job, job.number, *error, out);
  } else {
    deliver_answer(*job.who, job, job.number, *seen, sent, out);
  }
  if (!error && job.kind != CallKind::kRelease) {
    overhear(*job.who->group, job.who.get(), *seen, out);
  }
}

// One question, asked for all who ride along.
void Engine::deliver_to_riders(const Job& job, const Error* error, const Observation* seen,
                               LocalTime sent, Outbox& out) {
  Group& group = *job.who->group;
  group.polled_until = LocalTime::min();
  Riders all{{job.who, job.number}};
  for (auto& rider : std::exchange(group.riders, {})) all.push_back(std::move(rider));
  const Enrolled* turn = seen && seen->is_free() ? whose_turn(group, all) : nullptr;
  for (const auto& [who, number] : all) {
    if (error) {
      deliver_failure(*who, job, number, *error, out);
    } else if (turn && who.get() != turn && who->machine.is_waiting() &&
               who->machine.awaits(number)) {
      apply_and_submit(*who, who->machine.passed_over(number, out.now), out);
    } else {
      deliver_answer(*who, job, number, *seen, sent, out);
    }
  }
}

// Of those who shared a question: who has waited longest.
const Enrolled* Engine::whose_turn(const Group& group, const Riders& asked) {
  for (const Enrolled* waiter : group.waiters) {
    for (const auto& [who, number] : asked) {
      if (who.get() == waiter) return waiter;
    }
  }
  return nullptr;
}

void Engine::deliver_answer(Enrolled& who, const Job& job, std::uint64_t number,
                            const Observation& seen, LocalTime sent, Outbox& out) {
  const auto keep = who.weak_from_this().lock();
  who.trouble.reset();
  const Watch* watch = who.own_watch_ ? who.own_watch_.get() : who.group->watch.get();
  who.machine.set_pushed(watch && watch->is_live());
  const bool tells = job.kind != CallKind::kRelease;
  if (tells) note(seen, *who.group, out);
  const bool held = who.machine.phase() == Phase::kHolding;
  apply_and_submit(who, who.machine.answered(number, seen, sent, out.now), out);
  if (job.kind == CallKind::kRenew && held && who.machine.phase() == Phase::kHolding) {
    event(out, Event::Kind::kRenewed, who);
  }
  if (!tells) wake_first(*who.group, out);
}

void Engine::deliver_failure(Enrolled& who, const Job& job, std::uint64_t number,
                             const Error& error, Outbox& out) {
  const auto keep = who.weak_from_this().lock();
  if (who.machine.awaits(number)) who.trouble = error;
  if (job.kind == CallKind::kRenew) event(out, Event::Kind::kRenewalFailed, who, {}, &error);
  apply_and_submit(who, who.machine.failed(number, error.errc(), out.now), out);
  if (who.spec.poke && who.self_) out.poked.push_back(who.self_);
}

void Engine::note(const Observation& seen, Group& group, Outbox& out) {
  group.highest = std::max(group.highest, seen.owner.token);
  if (seen.owner.id.empty() || seen.is_free() || retired_.is_named(seen.owner.id, out.now)) return;
  if (std::find(group.former.begin(), group.former.end(), seen.owner.id) == group.former.end())
    return;
  const milliseconds left = seen.owner.transition_at - seen.now;
  retired_.add({group.mutex, seen.owner.id, out.now + left, milliseconds{1000}, milliseconds{500}},
               out.now);
}

// One answer serves all who wait here. That it is free, only the one who asked may act on.
void Engine::overhear(Group& group, const Enrolled* except, const Observation& seen, Outbox& out) {
  if (group.members.size() < 2) return;
  for (auto it = group.members.begin(); it != group.members.end();) {
    Enrolled& member = **it++;
    if (&member == except) continue;
    if (seen.is_free() && member.spec.goal != Goal::kObserve) continue;
    apply_and_submit(member, member.machine.overheard(seen, out.now), out);
  }
}

void Engine::wake_first(Group& group, Outbox& out) {
  for (Enrolled* waiter : group.waiters) {
    if (!waiter->machine.heeds_hints()) continue;
    apply_and_submit(*waiter, waiter->machine.wake(out.now), out);
    return;
  }
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

void Engine::launch(Outbox& out) {
  for (const Farewell& farewell : retired_.due(out.now)) give_back(farewell, out);
  while (std::optional<Batch> batch = batcher_.next(out.now)) {
    drop_unwanted(*batch);
    if (batch->jobs.empty()) {
      batcher_.succeeded(*batch);
      continue;
    }
    out.flights.push_back(
        std::make_shared<Flight>(shared_from_this(), std::move(*batch), Flight::Path::kBatcher));
  }
  set_alarm(out);
}

// Nobody waits for these any more. A poll may have been joined by others, a retired id has nobody.
void Engine::drop_unwanted(Batch& batch) {
  if (batch.kind == CallKind::kObserve) return;
  std::erase_if(batch.jobs,
                [](const Job& job) { return job.who && !job.who->machine.awaits(job.number); });
}

// An alarm that comes too early costs one look; it is not worth a system call to take it back.
void Engine::set_alarm(Outbox& out) {
  const LocalTime soonest =
      std::min({deadlines_.soonest(), batcher_.next_timer(), retired_.next_timer()});
  if (soonest >= alarm_) return;
  alarm_ = soonest;
  out.alarm = soonest;
}

void Engine::event(Outbox& out, Event::Kind kind, const Enrolled& who, LossReason reason,
                   const Error* error) {
  if (!on_event_) return;
  Event event;
  event.kind = kind;
  event.token = who.term ? who.term->token : 0;
  event.reason = reason;
  out.events.push_back({event, who.spec.mutex, who.machine.wire_id(),
                        error ? std::optional<Error>(*error) : std::nullopt});
}

// --- hints
// ----------------------------------------------------------------------------------------

void Engine::want_hints(const std::shared_ptr<Enrolled>& who) {
  if (store_->traits().queues_waiters && who->spec.goal != Goal::kObserve) return;
  Group& group = *who->group;
  {
    const std::lock_guard lock(guard_);
    if (!who->self_ || who->wants_hints_) return;
    who->wants_hints_ = true;
    if (++group.watching > 1 && group.watch) {
      who->machine.set_pushed(group.watch->is_live());
      return;
    }
  }
  std::weak_ptr<Group> weak = who->group;
  std::shared_ptr<Watch> watch =
      store_->watch(group.mutex, {}, [engine = weak_from_this(), weak = std::move(weak)] {
        if (const auto alive = engine.lock()) alive->on_hint(weak);
      });
  const std::lock_guard lock(guard_);
  if (!group.watch && group.watching > 0) group.watch = std::move(watch);
  who->machine.set_pushed(group.watch && group.watch->is_live());
}

void Engine::refresh_own_watch(Enrolled& who, Outbox& out) {
  if (!store_->traits().queues_waiters || who.spec.goal == Goal::kObserve) return;
  if (who.own_watch_id_ == who.machine.wire_id()) return;
  who.own_watch_id_ = who.machine.wire_id();
  if (who.own_watch_) out.dropped.push_back(std::move(who.own_watch_));
  out.unwatched.push_back(who.self_);
}

// --- outside the lock
// -----------------------------------------------------------------------------

void Engine::flush(Outbox& out) {
  if (out.alarm) executor_->set_alarm(*out.alarm);
  for (const auto& record : out.revoked) {
    if (out.on_users_thread) {
      record->request_stop();
    } else {
      executor_->revoke([record] { record->request_stop(); });
    }
  }
  // Before its claim goes out, so that no hint is missed.
  for (const auto& who : out.unwatched) {
    std::string id;
    {
      const std::lock_guard lock(guard_);
      id = who->own_watch_id_;
    }
    if (id.empty()) continue;  // it has left meanwhile
    std::shared_ptr<Watch> watch = store_->watch(
        who->spec.mutex, id, [engine = weak_from_this(), weak = std::weak_ptr<Enrolled>(who)] {
          if (const auto alive = engine.lock()) alive->on_own_hint(weak);
        });
    const std::lock_guard lock(guard_);
    who->machine.set_pushed(watch != nullptr);
    if (who->own_watch_id_ == id) who->own_watch_ = std::move(watch);
    if (watch) out.dropped.push_back(std::move(watch));
  }
  for (auto& flight : out.flights) {
    const Lane lane = flight->batch.lane;
    executor_->call(lane, std::move(flight));
  }
  for (auto& who : out.strands) {
    auto run = [engine = shared_from_this(), who] { engine->run_strand(who); };
    if (!run_on(who->spec.handle_executor, run)) executor_->callback(std::move(run));
  }
  // A watch ends only when its hint has returned, and this may be that hint.
  for (auto& watch : out.dropped)
    executor_->callback([watch = std::move(watch)]() mutable { watch.reset(); });
  for (const auto& who : out.poked) {
    if (who->spec.poke && who.get() != out.caller) who->spec.poke();
  }
  for (OwnedEvent& owned : out.events) {
    owned.event.mutex = owned.mutex;
    owned.event.wire_id = owned.wire_id;
    owned.event.error = owned.error ? &*owned.error : nullptr;
    on_event_(owned.event);
  }
}

}  // namespace simba::core
