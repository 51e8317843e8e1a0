// Where the engine meets the world: alarms and hints come in, callbacks, calls and watches go out.
#include <utility>

#include "core/engine.h"
#include "core/flight.h"
#include "core/hand_over.h"
#include "core/outbox.h"

namespace simba::core {

void Engine::on_alarm() {
  step([&](Outbox& out) {
    alarm_ = LocalTime::max();
    out.on_dispatcher = true;
    while (Timed* timed = deadlines_.pop_due(out.now)) {
      auto& who = static_cast<Enrolled&>(*timed);
      apply_and_submit(who, who.machine.timer(out.now), out);
    }
    drop_unused_watches(out);
  });
}

void Engine::on_hint(const std::weak_ptr<Group>& weak) {
  const auto group = weak.lock();
  if (!group) return;
  step([&](Outbox& out) {
    wake_first(*group, out);
    for (auto it = group->members.begin(); it != group->members.end();) {
      Enrolled& member = **it++;  // it may leave
      if (member.goal == Goal::kObserve) {
        apply_and_submit(member, member.machine.wake(out.now), out);
      }
    }
  });
}

void Engine::on_own_hint(const std::weak_ptr<Enrolled>& weak) {
  const auto who = weak.lock();
  if (!who) return;
  step([&](Outbox& out) {
    if (who->self_) apply_and_submit(*who, who->machine.wake(out.now), out);
  });
}

void Engine::want_hints(const std::shared_ptr<Enrolled>& who) {
  if (store_->traits().queues_waiters && who->goal != Goal::kObserve) return;
  Group& group = *who->group;
  {
    const std::lock_guard lock(guard_);
    if (!who->self_ || who->wants_hints_) return;
    who->wants_hints_ = true;
    ++group.watching;
    if (group.watch) {
      who->machine.set_pushed(group.watch->is_live());
      group.watch->need_reader(!listens_alone(*who));
      return;
    }
  }
  std::weak_ptr<Group> weak = who->group;
  std::shared_ptr<Watch> watch =
      this->watch(group.mutex, {}, [engine = weak_from_this(), weak = std::move(weak)] {
        if (const auto alive = engine.lock()) alive->on_hint(weak);
      });
  const std::lock_guard lock(guard_);
  if (!group.watch && group.watching > 0 && !is_closed_) group.watch = std::move(watch);
  who->machine.set_pushed(group.watch && group.watch->is_live());
  if (group.watch) group.watch->need_reader(!listens_alone(*who));
}

// Nobody else here needs a hint of its mutex.
bool Engine::listens_alone(const Enrolled& who) {
  return who.makes_calls_ && who.wants_hints_ && who.group->watching == 1;
}

bool Engine::OwnCalls::listen(int interrupt, LocalTime until) {
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(engine_.guard_);
    watch = who_->group->watch;
    if (!watch || !listens_alone(*who_)) return false;
    watch->need_reader(false);
  }
  bool listened = false;
  try {
    listened = watch->listen(interrupt, until);
  } catch (...) {
    listened = false;  // then the reader does
  }
  const std::lock_guard lock(engine_.guard_);
  if (!listened || !listens_alone(*who_)) watch->need_reader(true);
  return listened;
}

// Without hints it is asked more often: no reason to end anything.
std::shared_ptr<Watch> Engine::watch(std::string_view mutex, std::string_view wire_id,
                                     std::function<void()> wake) noexcept {
  try {
    return store_->watch(mutex, wire_id, std::move(wake));
  } catch (...) {
    return nullptr;
  }
}

void Engine::refresh_own_watch(Enrolled& who, Outbox& out) {
  if (!store_->traits().queues_waiters || who.goal == Goal::kObserve) return;
  if (who.watched_attempt_ == who.machine.attempt()) return;
  who.watched_attempt_ = who.machine.attempt();
  if (who.own_watch_) out.dropped.push_back(std::move(who.own_watch_));
  out.unwatched.push_back(who.self_);
}

// User code runs here: in order, one at a time, outside the lock.
void Engine::run_strand(const std::shared_ptr<Enrolled>& who) {
  while (true) {
    std::optional<Strand::Notice> notice;
    {
      const std::lock_guard lock(guard_);
      notice = who->audience->strand.next();
    }
    if (!notice) {
      if (who->poke) who->poke();  // somebody may wait for the strand to be idle
      return;
    }
    if (!notice->silent) who->audience->notify(notice->state);
    if (!notice->state.is_released()) continue;
    step([&](Outbox& out) {
      apply_and_submit(*who, who->machine.work_done(notice->state.self, out.now), out);
    });
  }
}

void Engine::flush(Outbox& out) {
  for (const auto& record : out.revoked) {
    if (record.get() == out.own) {
      record->request_stop();
    } else {
      executor_->revoke([record] { record->request_stop(); });
    }
  }
  // Before its claim goes out, so that no hint is missed.
  for (const auto& who : out.unwatched) {
    std::string id;
    std::uint64_t attempt = 0;
    {
      const std::lock_guard lock(guard_);
      attempt = who->watched_attempt_;
      id = who->machine.wire_id();
    }
    if (attempt == 0) continue;  // it has left meanwhile
    std::shared_ptr<Watch> watch = this->watch(
        who->mutex(), id, [engine = weak_from_this(), weak = std::weak_ptr<Enrolled>(who)] {
          if (const auto alive = engine.lock()) alive->on_own_hint(weak);
        });
    const std::lock_guard lock(guard_);
    who->machine.set_pushed(watch != nullptr);
    // Another thread may have been here for the same attempt. A watch does not end under the lock.
    if (who->watched_attempt_ == attempt && !is_closed_) std::swap(who->own_watch_, watch);
    if (watch) out.dropped.push_back(std::move(watch));
  }
  for (auto& flight : out.flights) {
    const Lane lane = flight->batch.lane;
    executor_->call(lane, std::move(flight));
  }
  for (auto& who : out.strands) {
    hand_over(executor_, who->audience->handle_executor,
              [engine = shared_from_this(), who] { engine->run_strand(who); });
  }
  // A watch ends only when its hint has returned, and this may be that hint.
  for (auto& watch : out.dropped)
    executor_->callback([watch = std::move(watch)]() mutable { watch.reset(); });
  for (const auto& who : out.poked) {
    if (who->poke) who->poke();
  }
  if (out.tells_later) {
    executor_->callback([engine = shared_from_this()] { engine->tell_untold(); });
  }
  if (!out.events.empty()) tell_events(out);
  for (const LogLine& line : out.lines) log_(line.level, line.text);
}

void Engine::tell_events(const Outbox& out) {
  std::vector<Event> events;
  for (const OwnedEvent& owned : out.events) {
    events.push_back(owned.view());
    if (on_event_ && !owned.is_put_off) on_event_(events.back());
  }
  std::vector<std::shared_ptr<const Listener>> alive;
  {
    const std::lock_guard lock(guard_);
    for (const auto& weak : listeners_) {
      if (auto listener = weak.lock()) alive.push_back(std::move(listener));
    }
  }
  for (const auto& listener : alive) (*listener)(events);
}

void Engine::tell_untold() {
  std::optional<OwnedEvent> next;
  while (true) {
    const std::optional<OwnedEvent> told = std::exchange(next, std::nullopt);
    {
      const std::lock_guard lock(guard_);
      if (told && told->group) --told->group->untold;
      is_telling_ = !untold_.empty();
      if (!is_telling_) return;
      next = std::move(untold_.front());
      untold_.pop_front();
      if (untold_.empty()) settled_.notify_all();
    }
    on_event_(next->view());
  }
}

std::shared_ptr<const Engine::Listener> Engine::listen(Listener listener) {
  auto kept = std::make_shared<const Listener>(std::move(listener));
  const std::lock_guard lock(guard_);
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  listeners_.push_back(kept);
  return kept;
}

}  // namespace simba::core
