// What the store said, and who is to hear it: under the lock, with the rest left in the outbox.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/engine.h"
#include "core/flight.h"
#include "core/outbox.h"
#include "core/store_span.h"

namespace simba::core {
namespace {

using Phase = Contention::Phase;

Error blocked_error(const StoreTraits& traits) {
  std::string what = "somebody else seems to hold a lock on its row";
  if (!traits.blocked_advice.empty()) what += "; " + traits.blocked_advice;
  return {Errc::kTimeout, what};
}

// R2: a term below one that this client has seen is no term. Whoever grants it has forgotten what
// it knew, or lies.
std::optional<Error> find_lie(const StoreTraits& traits, const Job& job, const Answer& answer) {
  const auto* seen = std::get_if<Observation>(&answer);
  if (job.kind != CallKind::kTake || seen == nullptr || !seen->owner.is_owner(job.wire_id) ||
      seen->owner.token == 0 || seen->owner.token >= job.floor) {
    return std::nullopt;
  }
  return Error(Errc::kCorrupt, traits.name + " grants '" + job.mutex + "' with the token " +
                                   std::to_string(seen->owner.token) + ", but " +
                                   std::to_string(job.floor) +
                                   " has been seen: its data was replaced by older data");
}

// Asked before it was heard that the store was replaced: a grant of the old one is no term, and who
// owned there is no news. Of the new one, where it is, the same claim gets the same once more.
std::optional<Error> find_outdated(const StoreTraits& traits, const Job& job, const Answer& answer,
                                   LocalTime sent, LocalTime replaced_at) {
  if (job.kind == CallKind::kRelease || sent > replaced_at ||
      !std::holds_alternative<Observation>(answer)) {
    return std::nullopt;
  }
  return Error(Errc::kReplaced, traits.name + " was replaced while '" + job.mutex +
                                    "' was asked for; what it answered counts no more");
}

}  // namespace

void Engine::completed(Flight& flight) {
  step([&](Outbox& out) {
    const auto& [answers, error] = flight.outcome;
    std::vector<Job>& jobs = flight.batch.jobs;
    note_call(flight.outcome, jobs, flight.sent, out);
    if (!error) {
      batcher_.succeeded(flight.batch);
      for (std::size_t i = 0; i < jobs.size(); ++i) deliver(jobs[i], answers[i], flight.sent, out);
    } else if (jobs.size() > 1 && !error->is_transient() && error->errc() != Errc::kReplaced) {
      batcher_.split(flight.batch);
    } else {
      batcher_.failed(flight.batch);
      for (const Job& job : jobs) deliver(job, *error, flight.sent, out);
    }
    if (error && error->errc() == Errc::kReplaced) end_all_terms(out);
  });
}

Engine::Inline Engine::completed(const Job& job, const Outcome& outcome, LocalTime sent) {
  Outbox out;
  out.caller = job.who.get();
  Inline came_to{};
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    note_call(outcome, {&job, 1}, sent, out);
    if (outcome.error) {
      deliver(job, *outcome.error, sent, out);
      if (outcome.error->errc() == Errc::kReplaced) end_all_terms(out);
    } else {
      deliver(job, outcome.answers.front(), sent, out);
    }
    came_to = become(*job.who, out.now);
    launch(out);
  }
  flush(out);
  return came_to;
}

void Engine::note_call(const Outcome& outcome, std::span<const Job> jobs, LocalTime sent,
                       Outbox& out) {
  if (log_) note_trouble(outcome, jobs, out);
  if (!is_heard()) return;
  Event called;
  called.kind = Event::Kind::kCalled;
  called.duration = out.now - sent;
  called.claims = jobs.size();
  out.events.push_back({called, nullptr, {}, outcome.error});
}

void Engine::note_trouble(const Outcome& outcome, std::span<const Job> jobs, Outbox& out) {
  if (outcome.error) {
    // Else it is one claim's fault: they are asked one by one, and that one says so.
    const bool is_of_all = jobs.size() == 1 || outcome.error->is_transient();
    if (is_of_all) complain({}, *outcome.error, out);
    return;
  }
  if (const auto line = complaints_.answered()) out.lines.push_back({LogLevel::kInfo, *line});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (const Error* error = std::get_if<Error>(&outcome.answers[i])) {
      complain(jobs[i].mutex, *error, out);
    }
  }
  // In a batch a locked row is skipped: another contender may be writing it just now. Who was asked
  // for alone has waited for it.
  if (jobs.size() == 1 && std::holds_alternative<Blocked>(outcome.answers.front())) {
    complain(jobs.front().mutex, blocked_error(store_->traits()), out);
  }
}

void Engine::complain(std::string_view mutex, const Error& error, Outbox& out) {
  const auto line = log_ ? complaints_.failed(mutex, error, out.now) : std::nullopt;
  if (!line) return;
  const LogLevel level = error.is_transient() ? LogLevel::kWarning : LogLevel::kError;
  out.lines.push_back({level, *line});
}

// Whoever was told, it concerns all: the next call of another would go to the new store, which
// knows nothing of its term.
void Engine::end_all_terms(Outbox& out) {
  replaced_at_ = out.now;
  for (const auto& [mutex, weak] : groups_) {
    const auto group = weak.lock();
    if (!group) continue;
    for (auto it = group->members.begin(); it != group->members.end();) {
      Enrolled& member = **it++;
      apply_and_submit(member, member.machine.replaced(out.now), out);
    }
  }
  for (const auto& weak : std::exchange(abandoned_, {})) {
    const auto term = weak.lock();
    if (!term || !term->is_owner()) continue;
    term->end();
    term->set_loss({LossReason::kReplaced, {}});  // that it ends its user was told before
  }
}

void Engine::note_useless_grant(Enrolled& who, const Observation& seen, Outbox& out) {
  const auto in_ms = [](nanoseconds span) {
    return std::to_string(std::chrono::ceil<milliseconds>(span).count()) + " ms";
  };
  const Timing& timing = who.machine.timing();
  who.trouble.emplace(
      Errc::kMisconfigured,
      store_->traits().name + " grants leases of " +
          in_ms(span_until(seen.owner.transition_at, seen.now)) + ", of which the last " +
          in_ms(timing.lease() - timing.revoke_at) +
          " are never used (the grace, and 1 % of what was asked for, as clocks drift apart): "
          "nothing is left; choose a shorter grace or lease, or let the store grant longer ones");
  complain(who.mutex(), *who.trouble, out);
  if (&who != out.caller && who.poke && who.self_) out.poked.push_back(who.self_);
}

void Engine::deliver(const Job& job, const Answer& answer, LocalTime sent, Outbox& out) {
  std::optional<Error> blocked;
  std::optional<Error> doubt = find_outdated(store_->traits(), job, answer, sent, replaced_at_);
  if (!doubt && (doubt = find_lie(store_->traits(), job, answer))) complain(job.mutex, *doubt, out);
  const Error* error = doubt ? &*doubt : std::get_if<Error>(&answer);
  if (std::holds_alternative<Blocked>(answer)) {
    batcher_.blocked(job.mutex);
    error = &blocked.emplace(blocked_error(store_->traits()));
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
    overhear(*job.who->group, job.who.get(), *seen, sent, out);
  }
  if (!error && job.kind == CallKind::kTake) deliver_alike(job, *seen, sent, out);
}

// Who has not been sent yet would hear the same. Where waiters queue in the store it would also get
// its place there; and who the answer names has to hear it itself.
void Engine::deliver_alike(const Job& job, const Observation& seen, LocalTime sent, Outbox& out) {
  if (seen.is_free() || store_->traits().queues_waiters) return;
  for (Job& alike : batcher_.withdraw(job.mutex, seen.owner.id)) {
    deliver_answer(*alike.who, alike, alike.number, seen, sent, out);
    out.let_go.push_back(std::move(alike.who));
  }
}

// One question, asked for all who ride along.
void Engine::deliver_to_riders(const Job& job, const Error* error, const Observation* seen,
                               LocalTime sent, Outbox& out) {
  Group& group = *job.who->group;
  group.polled_until = LocalTime::min();
  if (group.riders.empty()) {
    if (error) {
      deliver_failure(*job.who, job, job.number, *error, out);
    } else {
      deliver_answer(*job.who, job, job.number, *seen, sent, out);
    }
    return;
  }
  Riders all{{job.who, job.number}};
  for (auto& rider : std::exchange(group.riders, {})) all.push_back(std::move(rider));
  const Enrolled* turn = seen && seen->is_free() ? whose_turn(group, all) : nullptr;
  for (auto& [who, number] : all) {
    if (error) {
      deliver_failure(*who, job, number, *error, out);
    } else if (turn && who.get() != turn && who->machine.is_waiting() &&
               who->machine.awaits(number)) {
      apply_and_submit(*who, who->machine.passed_over(number, out.now), out);
    } else {
      deliver_answer(*who, job, number, *seen, sent, out);
    }
    out.let_go.push_back(std::move(who));
  }
}

// Of those who shared a question: who has waited longest.
const Enrolled* Engine::whose_turn(const Group& group, const Riders& asked) {
  std::unordered_set<const Enrolled*> all;
  for (const auto& [who, number] : asked) all.insert(who.get());
  const auto first = std::find_if(group.waiters.begin(), group.waiters.end(),
                                  [&](const Enrolled* waiter) { return all.contains(waiter); });
  return first == group.waiters.end() ? nullptr : *first;
}

void Engine::deliver_answer(Enrolled& who, const Job& job, std::uint64_t number,
                            const Observation& seen, LocalTime sent, Outbox& out) {
  who.trouble.reset();
  const Watch* watch = who.own_watch_ ? who.own_watch_.get() : who.group->watch.get();
  who.machine.set_pushed(watch && watch->is_live());
  const bool tells = job.kind != CallKind::kRelease;
  const bool is_mine = who.machine.awaits(number) && seen.owner.is_owner(who.machine.wire_id());
  if (tells && !is_mine) note(seen, *who.group, out);
  const bool held = who.machine.phase() == Phase::kHolding;
  Effects effects = who.machine.answered(number, seen, sent, out.now);
  if (effects.useless) note_useless_grant(who, seen, out);
  apply_and_submit(who, std::move(effects), out);
  if (job.kind == CallKind::kRenew && held && who.machine.phase() == Phase::kHolding) {
    event(out, Event::Kind::kRenewed, who);
  }
  if (!tells) wake_first(*who.group, out);
}

void Engine::deliver_failure(Enrolled& who, const Job& job, std::uint64_t number,
                             const Error& error, Outbox& out) {
  if (who.machine.awaits(number)) who.trouble = error;
  if (job.kind == CallKind::kRenew) event(out, Event::Kind::kRenewalFailed, who, {}, &error);
  apply_and_submit(who, who.machine.failed(number, error.errc(), out.now), out);
  if (&who != out.caller && who.poke && who.self_) out.poked.push_back(who.self_);
}

void Engine::note(const Observation& seen, Group& group, Outbox& out) {
  group.highest = std::max(group.highest, seen.owner.token);
  if (seen.owner.id.empty() || seen.is_free() || retired_.is_named(seen.owner.id, out.now)) return;
  if (std::find(group.former.begin(), group.former.end(), seen.owner.id) == group.former.end())
    return;
  const milliseconds left = span_until(seen.owner.transition_at, seen.now);
  retired_.add({group.mutex, seen.owner.id, out.now + left, milliseconds{1000}, milliseconds{500}},
               out.now);
}

// One answer serves all who wait here. That it is free, only the one who asked may act on.
void Engine::overhear(Group& group, const Enrolled* except, const Observation& seen, LocalTime sent,
                      Outbox& out) {
  if (group.members.size() < 2) return;
  for (auto it = group.members.begin(); it != group.members.end();) {
    Enrolled& member = **it++;
    if (&member == except) continue;
    if (seen.is_free() && member.goal != Goal::kObserve) continue;
    apply_and_submit(member, member.machine.overheard(seen, sent, out.now), out);
  }
}

void Engine::wake_first(Group& group, Outbox& out) {
  for (Enrolled* waiter : group.waiters) {
    if (!waiter->machine.heeds_hints()) continue;
    apply_and_submit(*waiter, waiter->machine.wake(out.now), out);
    return;
  }
}

}  // namespace simba::core
