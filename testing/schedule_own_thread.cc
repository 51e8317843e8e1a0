// A lock as SimbaLocker takes it: the thread of its caller makes the calls, and waits in between.
#include <utility>

#include "testing/schedule.h"

namespace simba::testing {
namespace {

using IfRefused = core::Engine::IfRefused;
using Inline = core::Engine::Inline;
using Phase = core::Contention::Phase;

constexpr double kTries = 0.3;     // instead of waiting
constexpr double kRenewals = 0.3;  // by hand, instead of the unlock
constexpr double kStops = 0.05;    // in the midst of a call

}  // namespace

// False: the process did not outlive the call. Its engine did, until here: a thread that is killed
// in the midst of it must not come back to nothing.
bool Schedule::call_here(Actor& actor, const Body& body) {
  const std::shared_ptr<core::Engine> engine = hosts_[actor.node].engine;
  const std::shared_ptr<core::Enrolled> who = actor.who;
  actor.in_call = true;
  if (!is_calm() && sim_.dice().chance(kStops)) stop_in_the_midst(actor);
  {
    const SimNode::OwnThread thread(*actor.process);
    body(*engine, who);
  }
  if (actor.who != who) return false;
  actor.in_call = false;
  return true;
}

// Its process stands still, most likely while the answer is on its way: when it goes on, the answer
// comes late.
void Schedule::stop_in_the_midst(const Actor& actor) {
  SimNode* const process = actor.process;
  const nanoseconds standstill = sim_.dice().between(nanoseconds{0}, timing_.lease() * 2);
  sim_.world().after(sim_.dice().between(nanoseconds{0}, milliseconds{3}),
                     [this, process, standstill] {
                       if (process->is_paused()) return;
                       process->pause();
                       sim_.world().after(standstill, [process] { process->resume(); });
                     });
}

void Schedule::lock_here(Actor& actor) {
  const bool tries = sim_.dice().chance(kTries);
  const nanoseconds patience = sim_.dice().between(nanoseconds{0}, timing_.lease() * 2);
  actor.until = actor.process->now() + (tries ? nanoseconds{0} : patience);
  Inline came_to{};
  const bool lives = call_here(actor, [&](core::Engine& engine, const auto& who) {
    came_to = engine.start_inline(who, tries ? LocalTime::max() : actor.until,
                                  tries ? IfRefused::kGivesUp : IfRefused::kWaits);
    if (came_to != Inline::kOpen) return;
    // Its thread goes on to wait, unless its process is gone.
    auto calls = std::make_shared<core::Engine::OwnCalls>(engine, who);
    if (actor.who == who) actor.calls = std::move(calls);
  });
  if (!lives) return;
  if (came_to == Inline::kHeld && !actor.who->term->is_in_ttl())
    violate("P1", actor.name + " was locked and is not in its ttl");
  if (came_to == Inline::kOpen) act(actor, patience, &Schedule::wait_here);
  look(actor);
}

// Something may have happened to it, or its time is up.
void Schedule::wait_here(Actor& actor) {
  if (actor.in_call || !actor.calls) return;  // it looks when the call is over
  while (actor.who->machine.phase() == Phase::kTrying && actor.calls->is_due()) {
    const bool lives = call_here(actor, [&](core::Engine&, const auto&) {
      const std::shared_ptr<core::Engine::OwnCalls> calls = actor.calls;
      calls->make(actor.until);
    });
    if (!lives) return;
  }
  if (actor.who->machine.phase() == Phase::kTrying) {
    if (actor.process->now() < actor.until) return;
    tell(actor.name, " gives up waiting");
    engine_of(actor).give_up(actor.who);
  }
  actor.calls.reset();
  const Phase phase = actor.who->machine.phase();
  const bool is_late = phase == Phase::kHolding && !actor.who->term->is_in_ttl();
  if (is_late || phase == Phase::kEnding || phase == Phase::kDraining) {
    engine_of(actor).finish(actor.who);
  }
  look(actor);
}

void Schedule::hold_here(Actor& actor) {
  const bool renews = sim_.dice().chance(kRenewals);
  const nanoseconds longest = sim_.dice().chance(0.5) ? timing_.lease() : milliseconds{100};
  act(actor, sim_.dice().between(nanoseconds{0}, longest),
      renews ? &Schedule::renew_here : &Schedule::unlock_here);
}

void Schedule::renew_here(Actor& actor) {
  Inline came_to{};
  const bool lives = call_here(actor, [&](core::Engine& engine, const auto& who) {
    came_to = engine.renew_inline(who, LocalTime::max());
  });
  if (!lives) return;
  if (came_to == Inline::kHeld && !actor.who->term->is_in_ttl())
    violate("P1", actor.name + " was renewed and is not in its ttl");
  act(actor, sim_.dice().between(nanoseconds{0}, timing_.lease()), &Schedule::unlock_here);
}

void Schedule::unlock_here(Actor& actor) {
  tell(actor.name, " unlocks");
  const bool lives = call_here(actor, [&](core::Engine& engine, const auto& who) {
    engine.finish_inline(who);
    if (who->term->is_owner() && who->term->loss().reason != LossReason::kAbandoned)
      violate("P4", actor.name + " is unlocked and still owns");
  });
  if (lives && actor.who->machine.phase() == Phase::kIdle) look(actor);
}

}  // namespace simba::testing
