#include "core/engine.h"

#include <algorithm>
#include <utility>

#include "core/flight.h"
#include "core/fork.h"
#include "core/outbox.h"

namespace simba::core {
namespace {

using Phase = Contention::Phase;

constexpr std::size_t kRemembered = 2'048;  // mutexes, about a megabyte

}  // namespace

Enrolled::Enrolled(Spec spec, std::shared_ptr<Group> its_group, std::shared_ptr<const Rules> rules,
                   const StoreTraits& traits, Executor& executor)
    : goal(spec.goal),
      poke(std::move(spec.poke)),
      audience(!spec.notify
                   ? nullptr
                   : new Audience{std::move(spec.notify), std::move(spec.handle_executor)}),
      group(std::move(its_group)),
      machine(std::move(spec.label), std::move(rules), traits.queues_waiters, executor) {
  if (!audience) machine.tell_nobody();
}

Engine::Engine(std::shared_ptr<Store> store, std::shared_ptr<Executor> executor, EventHook on_event,
               LogSink log)
    : store_(std::move(store)),
      executor_(std::move(executor)),
      on_event_(std::move(on_event)),
      log_(std::move(log)),
      fork_epoch_(fork_epoch()),
      renewals_meet_from_(executor_->now()) {}

// Who is active holds itself; with the engine gone nobody else would let go.
Engine::~Engine() {
  for (const auto& [mutex, weak] : groups_) {
    const auto group = weak.lock();
    if (!group) continue;
    while (!group->members.empty()) {
      Enrolled& member = *group->members.front();
      group->members.leave(member.member_at_);
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

std::shared_ptr<Enrolled> Engine::enroll(Spec spec) {
  store_->check_mutex(spec.mutex);
  if (spec.goal != Goal::kObserve) store_->check_label(spec.label);
  const std::lock_guard lock(guard_);
  forget_unused_groups();
  std::weak_ptr<Group>& slot = groups_[spec.mutex];
  std::shared_ptr<Group> group = slot.lock();
  if (!group) slot = group = std::make_shared<Group>(spec.mutex);
  remember(group);
  std::shared_ptr<const Rules> rules = rules_of(spec.options);
  return std::make_shared<Enrolled>(std::move(spec), std::move(group), std::move(rules),
                                    store_->traits(), *executor_);
}

// Most clients have one set of options for thousands of contenders.
std::shared_ptr<const Rules> Engine::rules_of(const ContendOptions& options) {
  if (!rules_ || rules_->options != options) {
    rules_ = std::make_shared<const Rules>(options, renewals_meet_from_);
  }
  return rules_;
}

void Engine::remember(const std::shared_ptr<Group>& group) {
  group->is_recent = true;
  if (std::exchange(group->is_remembered, true)) return;
  if (remembered_.size() < kRemembered) {
    remembered_.push_back(group);
    return;
  }
  while (std::exchange(remembered_[next_remembered_]->is_recent, false)) {
    next_remembered_ = (next_remembered_ + 1) % remembered_.size();
  }
  remembered_[next_remembered_]->is_remembered = false;
  remembered_[next_remembered_] = group;
  next_remembered_ = (next_remembered_ + 1) % remembered_.size();
}

// A name per order must not grow the map for ever.
void Engine::forget_unused_groups() {
  if (groups_.size() < sweep_groups_at_) return;
  std::erase_if(groups_, [](const auto& group) { return group.second.expired(); });
  sweep_groups_at_ = std::max<std::size_t>(2 * groups_.size(), 64);
}

Engine::Snapshot Engine::start(const std::shared_ptr<Enrolled>& who, LocalTime give_up_at) {
  Snapshot before;
  {
    const std::lock_guard lock(guard_);
    before = look_at(*who);
    if (before.is_active) return before;
    activate(*who);
  }
  want_hints(who);
  step([&](Outbox& out) {
    if (who->lives != before.lives) return;  // stopped before it began
    apply_and_submit(*who, who->machine.start(who->goal, out.now, give_up_at), out);
  });
  return before;
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
    ask = apply(*who, who->machine.start(who->goal, out.now), out);
    if (ask && !in_line) {
      submit(*who, *std::exchange(ask, std::nullopt), out);
    }
    launch(out);
  }
  flush(out);
  if (ask && fly_inline(who, std::move(*ask), floor, out.now, deadline) == Inline::kHeld) {
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
  {
    const std::lock_guard lock(guard_);
    who->makes_calls_ = true;  // its thread goes on to wait for it, by OwnCalls
  }
  want_hints(who);
  step([&](Outbox& again) {
    // After an error its own pause decides.
    if (!who->trouble) apply_and_submit(*who, who->machine.wake(again.now), again);
  });
  return Inline::kOpen;
}

Engine::Snapshot Engine::stop(const std::shared_ptr<Enrolled>& who,
                              std::optional<nanoseconds> patience) {
  Snapshot before;
  step([&](Outbox& out) {
    before = look_at(*who);
    if (before.is_active && before.phase == Phase::kIdle) {  // another thread is in start()
      ++who->lives;
      who->left_work = false;
      deactivate(*who, out);
      return;
    }
    if (who->audience) who->audience->strand.forget_others();
    const nanoseconds with_work = patience.value_or(who->machine.timing().patience);
    apply_and_submit(*who, who->machine.stop(out.now, with_work), out);
  });
  return before;
}

void Engine::give_up(const std::shared_ptr<Enrolled>& who) {
  step([&](Outbox& out) { apply_and_submit(*who, who->machine.give_up(out.now), out); });
}

void Engine::finish(const std::shared_ptr<Enrolled>& who) {
  step([&](Outbox& out) {
    apply_and_submit(*who, who->machine.stop(out.now), out);
    apply_and_submit(*who, who->machine.work_done(who->machine.wire_id(), out.now), out);
  });
}

Engine::Inline Engine::finish_inline(const std::shared_ptr<Enrolled>& who) {
  Outbox out;
  out.caller = who.get();
  std::optional<Ask> ask;
  Inline came_to{};
  Token floor = 0;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    out.own = who->term.get();
    apply_and_submit(*who, who->machine.stop(out.now), out);
    ask = apply(*who, who->machine.work_done(who->machine.wire_id(), out.now), out);
    came_to = become(*who, out.now);
    floor = who->group->highest;
    launch(out);
  }
  flush(out);
  if (!ask) return came_to;
  const LocalTime deadline = ask->deadline;
  return fly_inline(who, std::move(*ask), floor, out.now, deadline);
}

Engine::Inline Engine::renew_inline(const std::shared_ptr<Enrolled>& who, LocalTime deadline) {
  Outbox out;
  out.caller = who.get();
  std::optional<Ask> ask;
  Inline came_to{};
  Token floor = 0;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    ask = apply(*who, who->machine.renew(out.now), out);
    came_to = become(*who, out.now);
    floor = who->group->highest;
    launch(out);
  }
  flush(out);
  if (!ask) return came_to;
  return fly_inline(who, std::move(*ask), floor, out.now, deadline);
}

Engine::Inline Engine::fly_inline(const std::shared_ptr<Enrolled>& who, Ask ask, Token floor,
                                  LocalTime sent, LocalTime deadline) {
  const Timing& timing = who->machine.timing();
  const Job job{ask.kind,   who->mutex(),      std::move(ask.wire_id), ask.token, floor,
                timing.ttl, timing.transition, ask.deadline,           {},        who,
                ask.number};
  const Claim claim = job.claim();
  return completed(
      job, Outcome::of(*store_, job.kind, {&claim, 1}, std::min(job.deadline, deadline)), sent);
}

Engine::Inline Engine::become(const Enrolled& who, LocalTime now) {
  const Contention& machine = who.machine;
  if (machine.phase() == Phase::kIdle) return Inline::kOver;
  const bool held = machine.phase() == Phase::kHolding && now < machine.term()->ttl_end;
  return held ? Inline::kHeld : Inline::kOpen;
}

Engine::OwnCalls::OwnCalls(Engine& engine, std::shared_ptr<Enrolled> who)
    : engine_(engine), who_(std::move(who)) {
  const std::lock_guard lock(engine_.guard_);
  who_->makes_calls_ = true;
}

Engine::OwnCalls::~OwnCalls() {
  {
    const std::lock_guard lock(engine_.guard_);
    who_->makes_calls_ = false;
  }
  if (const auto flight = take()) engine_.recall(flight);
}

// It was not sent. On a question others ride along.
void Engine::recall(const std::shared_ptr<Flight>& flight) {
  if (flight->batch.kind == CallKind::kObserve) {
    executor_->call(flight->batch.lane, flight);
    return;
  }
  step([&](Outbox& out) {
    batcher_.failed(flight->batch);
    for (const Job& job : flight->batch.jobs) {
      Enrolled& who = *job.who;
      apply_and_submit(who, who.machine.failed(job.number, Errc::kTimeout, out.now), out);
    }
  });
}

bool Engine::OwnCalls::is_due() const {
  const std::lock_guard lock(engine_.guard_);
  return who_->handed_ != nullptr;
}

bool Engine::OwnCalls::make(LocalTime deadline) {
  const auto flight = take();
  if (!flight) return false;
  flight->batch.deadline = std::min(flight->batch.deadline, deadline);
  flight->send();
  flight->perform();
  flight->complete();
  const std::lock_guard lock(engine_.guard_);
  who_->makes_calls_ = true;
  return true;
}

// Who is in a call takes no other: one that hangs in the driver must not hold up the next.
std::shared_ptr<Flight> Engine::OwnCalls::take() {
  const std::lock_guard lock(engine_.guard_);
  if (who_->handed_) who_->makes_calls_ = false;
  return std::move(who_->handed_);
}

void Engine::store_was_replaced() {
  step([this](Outbox& out) { end_all_terms(out); });
}

Engine::Snapshot Engine::snapshot(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return look_at(who);
}

Engine::Snapshot Engine::look_at(const Enrolled& who) {
  return {who.machine.phase(),
          who.self_ != nullptr,
          who.machine.has_answer(),
          who.machine.is_stopping(),
          who.left_work,
          who.lives,
          who.audience && who.audience->strand.is_running(),
          who.term,
          who.trouble};
}

Phase Engine::phase(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return who.machine.phase();
}

std::shared_ptr<TermRecord> Engine::term(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return who.term;
}

MutexState Engine::state(const Enrolled& who) const {
  const std::lock_guard lock(guard_);
  return who.audience ? who.audience->state : MutexState::none();
}

void Engine::close(nanoseconds patience) {
  if (is_forked()) return;
  if (executor_->goes_on_by_itself()) {
    std::unique_lock lock(guard_);
    settled_.wait_for(lock, patience,
                      [&] { return active_ == 0 && retired_.is_settled() && untold_.empty(); });
  }
  // Here, and not with the engine: its last owner may be a hint, and a watch waits for its hints.
  std::vector<std::shared_ptr<Watch>> watches;
  {
    const std::lock_guard lock(guard_);
    is_closed_ = true;
    take_watches(watches);
    lingering_.clear();
  }
  watches.clear();
  executor_->shut_down();
}

void Engine::take_watches(std::vector<std::shared_ptr<Watch>>& watches) {
  for (const auto& [mutex, weak] : groups_) {
    const auto group = weak.lock();
    if (!group) continue;
    watches.push_back(std::move(group->watch));
    for (Enrolled* member : group->members) watches.push_back(std::move(member->own_watch_));
  }
}

}  // namespace simba::core
