#include "testing/schedule.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace simba::testing {
namespace {

using std::chrono::seconds;
using Phase = core::Contention::Phase;

constexpr nanoseconds kCalmLastsBeforeTheKill = seconds{20};
constexpr double kForking = 0.05;  // a real child costs as much as a whole schedule
constexpr double kOwnThreads = 0.4;
constexpr double kObservers = 0.25;
constexpr double kLimitedHold = 0.25;
constexpr double kLastingCallbacks = 0.2;
constexpr double kSteadyServer = 0.3;
constexpr double kReplacing = 0.15;
constexpr double kReplacingAfterGrant = 0.5;
constexpr double kLateAboutThen = 0.5;
constexpr double kOldClocks = 0.5;        // of forgetful stores
constexpr double kStopsAtOnce = 0.5;      // an observer, with its first question under way
constexpr double kLargestDrift = 0.0045;  // two clocks then differ by less than the 1 % of P1b
constexpr double kHeedsItsLoss = 0.5;     // the rest works as long as it likes
constexpr std::uint64_t kMostEvents = 100'000;

struct Lease {
  milliseconds ttl, transition;
};
constexpr std::array<Lease, 6> kLeases{{{milliseconds{10'000}, milliseconds{6'000}},
                                        {milliseconds{10'000}, milliseconds{6'000}},
                                        {milliseconds{3'000}, milliseconds{5'000}},
                                        {milliseconds{5'000}, milliseconds{2'000}},
                                        {milliseconds{8'000}, milliseconds{0}},
                                        {milliseconds{2'000}, milliseconds{1'000}}}};

// How the world of a schedule differs from what was asked for.
SimOptions drift_further(SimOptions options, bool is_steady) {
  if (is_steady) options.largest_drift = kLargestDrift;
  return options;
}

}  // namespace

Draw::Draw(std::uint64_t seed, ModelKind kind) : dice(seed) {
  const Lease lease = kLeases[dice.below(kLeases.size())];
  contend.ttl = lease.ttl;
  contend.transition = lease.transition;
  if (kind == ModelKind::kSession && contend.transition < seconds{2}) {
    contend.transition = seconds{2};  // a place in line must outlive the polls that keep it
  }
  slow_callbacks = dice.chance(0.5);
  one_label = dice.chance(0.3);
  mutexes = 1 + dice.below(2);
  Dice others(~seed);  // thrown apart from the rest: old seeds stay as they were
  if (others.chance(kForking)) fork_at = others.between(World::Time{}, kCalmFrom);
  own_threads = others.chance(kOwnThreads);
  observers = others.chance(kObservers);
  if (others.chance(kLimitedHold)) {
    const nanoseconds span = contend.ttl + contend.transition;
    contend.max_hold = std::chrono::ceil<milliseconds>(others.between(span / 4, span * 2));
  }
  lasting_callbacks = others.chance(kLastingCallbacks);
  clock_steps = !others.chance(kSteadyServer);
  if (kind != ModelKind::kForgetful &&
      others.chance(lasting_callbacks ? 2 * kReplacing : kReplacing)) {
    replace_at = others.between(World::Time{}, kCalmFrom);
    replaces_after_grant = others.chance(kReplacingAfterGrant);
  }
  successors_are_behind = kind == ModelKind::kForgetful && clock_steps && others.chance(kOldClocks);
}

Schedule::Schedule(std::uint64_t seed, const SimOptions& options)
    : draw_(seed, options.kind), sim_(draw_.dice, drift_further(options, !draw_.clock_steps)) {
  sim_.server().on_write(
      [this](const Claim& claim, bool is_release, const Observation& before,
             const Observation& after) { check_write(claim, is_release, before, after); });
  sim_.on_crash([this](const SimNode& node) {
    for (Host& host : hosts_) {
      if (host.process == &node) on_crash(host);
    }
  });
  // Two at least have services: when one is killed, another one takes over.
  std::size_t contending = 2 + sim_.dice().below(3);
  if (draw_.own_threads && contending > 2) --contending;
  if (draw_.observers && contending > 2) --contending;
  for (std::size_t i = 0; i < contending; ++i) add_node(Cast::kAll);
  if (draw_.own_threads) add_node(Cast::kLocks);
  if (draw_.observers) add_node(Cast::kObservers);
  FaultPlan faults;
  faults.until = kCalmFrom;
  faults.clock_steps = draw_.clock_steps;
  faults.successors_are_behind = draw_.successors_are_behind;
  faults.lease = timing_.lease();
  for (std::size_t i = 0; i < draw_.mutexes; ++i) faults.mutexes.push_back(mutex_name(i));
  if (draw_.slow_callbacks) faults.slowest_callback = contend_.ttl;
  faults.then = [this] { when_calm(); };
  sim_.plan_faults(std::move(faults));
  if (draw_.fork_at) sim_.world().at(*draw_.fork_at, [this] { fork_a_child(); });
  if (draw_.replace_at) {
    sim_.world().at(*draw_.replace_at, [this] {
      is_grant_awaited_ = draw_.replaces_after_grant;
      if (!is_grant_awaited_) replace_the_store();
    });
  }
}

const std::string& Schedule::mutex_name(std::size_t mutex) {
  static const std::array<std::string, 2> names{"report", "Report"};
  return names.at(mutex);
}

void Schedule::add_actor(std::size_t node, std::size_t mutex, core::Goal goal,
                         const std::string& kind) {
  auto actor = std::make_unique<Actor>();
  actor->process = hosts_[node].process;
  actor->node = node;
  actor->mutex = mutex;
  actor->goal = goal;
  actor->has_thread = goal == core::Goal::kOnce && draw_.own_threads;
  actor->name = "n" + std::to_string(node) + kind + std::to_string(mutex);
  hosts_[node].actors.push_back(actor.get());
  actors_.push_back(std::move(actor));
}

void Schedule::add_node(Cast cast) {
  const std::size_t index = hosts_.size();
  SimNode& node = sim_.add_node("node " + std::to_string(index));
  hosts_.emplace_back().process = &node;
  const auto chance = [&] { return cast == Cast::kLocks || !sim_.dice().chance(0.5); };
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    const bool observes = cast == Cast::kObservers || (draw_.observers && index == 0);
    const bool locks = cast != Cast::kObservers && chance();
    if (cast == Cast::kAll) add_actor(index, mutex, core::Goal::kKeep, "-service-");
    if (locks) add_actor(index, mutex, core::Goal::kOnce, "-lock-");
    if (observes) add_actor(index, mutex, core::Goal::kObserve, "-observer-");
    // Two share their questions.
    if (cast == Cast::kObservers) add_actor(index, mutex, core::Goal::kObserve, "-onlooker-");
  }
  node.run([this, index](SimNode&) {
    boot(hosts_[index]);
    return nullptr;  // what it has is in hosts_: unlike a user's it can be destroyed
  });
}

SimResult Schedule::run() {
  sim_.run(kEnd, [this] {
    check();
    if (sim_.counts().events > kMostEvents) violate("P6", "the engine spins");
  });
  const SimWorld::Counts& counts = sim_.counts();
  result_.violation = sim_.violation();
  result_.timeline = sim_.timeline();
  result_.events = counts.events;
  result_.calls = counts.calls;
  result_.crashes = counts.crashes;
  result_.pauses = counts.pauses;
  result_.restarts = counts.restarts;
  result_.cuts = counts.cuts;
  return std::move(result_);
}

void Schedule::boot(Host& host) {
  host.engine =
      std::make_shared<core::Engine>(host.process->connect(), host.process->make_executor());
  host.engine->open();
  for (Actor* actor : host.actors) {
    enroll(*actor);
    begin(*actor, sim_.dice().between(nanoseconds{0}, seconds{2}));
  }
}

void Schedule::on_crash(Host& host) {
  ++host.life;
  for (Actor* actor : host.actors) {
    Actor forgotten;  // all but who it is
    forgotten.process = actor->process;
    forgotten.node = actor->node;
    forgotten.mutex = actor->mutex;
    forgotten.goal = actor->goal;
    forgotten.has_thread = actor->has_thread;
    forgotten.name = actor->name;
    forgotten.round = actor->round + 1;
    *actor = std::move(forgotten);
  }
  owners_change_ = true;
  host.dead_ids.clear();  // nobody is left who could give them back
  for (Row& row : rows_) row.is_known = false;
  host.engine.reset();
}

void Schedule::when_calm() {
  owned_at_.fill(sim_.now());
  for (const auto& actor : actors_) {
    if (actor->goal != core::Goal::kOnce && actor->who->machine.phase() == Phase::kIdle)
      begin(*actor, {});
  }
  sim_.world().after(kCalmLastsBeforeTheKill, [this] { kill_an_owner(); });
}

// Nothing else is wrong any more: the next one is there when the lease has ended.
void Schedule::kill_an_owner() {
  std::optional<std::size_t> victim;
  for (const auto& actor : actors_) {
    if (!actor->who || !actor->owns || !actor->term->is_in_ttl()) continue;
    if (!victim) victim = actor->node;
    if (victim == actor->node) bereft_of_[actor->mutex] = actor->wire_id;
  }
  if (victim) sim_.nodes()[*victim]->crash();
}

void Schedule::fork_a_child() {
  tell("every process forks a child");
  const pid_t child = fork();
  if (child == 0) _exit(look_around_in_child());
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return;
  violate("P1", WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "a forked child owns"
                                                              : "a forked child calls the store");
}

// Who owned in the old one and has not been told yet may own beside the owner in the new one.
void Schedule::replace_the_store() {
  last_of_old_store_ = sim_.replace_store();
  owners_change_ = true;
}

// Messages are late about then: before who was granted hears of that, another one of its process
// may hear that the store is gone.
void Schedule::replace_after_grant() {
  is_grant_awaited_ = false;
  sim_.weather().slow = kLateAboutThen;
  sim_.weather().slowest = timing_.call_deadline;
  sim_.world().after(nanoseconds{0}, [this] { replace_the_store(); });
  sim_.world().after(timing_.call_deadline, [this] {
    if (is_calm()) return;
    sim_.weather().slow = 0;
    sim_.weather().slowest = timing_.lease();
  });
}

int Schedule::look_around_in_child() {
  for (const auto& actor : actors_) {
    if (!actor->term) continue;
    if (actor->term->is_owner() || actor->term->is_in_ttl()) return 1;
    if (!actor->term->lost().stop_requested()) return 1;
  }
  const std::uint64_t calls = sim_.counts().calls;
  for (const Host& host : hosts_) {
    if (host.engine) host.engine->close(nanoseconds{0});
  }
  return sim_.counts().calls == calls ? 0 : 2;
}

void Schedule::enroll(Actor& actor) {
  core::Spec spec;
  spec.mutex = mutex_name(actor.mutex);
  spec.label = draw_.one_label ? "same" : actor.name;
  spec.options = contend_;
  spec.goal = actor.goal;
  if (actor.goal == core::Goal::kKeep) {
    spec.notify = [this, &actor, life = hosts_[actor.node].life](const MutexState& state) {
      // Else the process was killed in the midst of a callback that lasts.
      if (hosts_[actor.node].life == life) on_notice(actor, state);
    };
  } else if (actor.goal == core::Goal::kObserve) {
    spec.notify = [this, &actor](const MutexState& state) { on_sight(actor, state); };
  }
  spec.poke = [this, &actor] {
    actor.process->post(nanoseconds{0}, [this, &actor] { look(actor); });
  };
  actor.who = engine_of(actor).enroll(std::move(spec));
}

// A plan of an actor that is dropped when a newer one is made.
void Schedule::act(Actor& actor, nanoseconds delay, void (Schedule::*what)(Actor&)) {
  const std::uint64_t round = ++actor.round;
  actor.process->post(delay, [this, &actor, round, what] {
    if (actor.round == round && actor.who) (this->*what)(actor);
  });
}

void Schedule::begin(Actor& actor, nanoseconds delay) { act(actor, delay, &Schedule::start); }

void Schedule::start(Actor& actor) {
  if (actor.who->machine.phase() != Phase::kIdle) return;
  if (actor.has_thread) return lock_here(actor);
  actor.sight = MutexOwner::none();
  engine_of(actor).start(actor.who);
  if (!engine_of(actor).state(*actor.who).after.id.empty())
    violate("P4", actor.name + " has just been started and knows an owner of its last life");
  const nanoseconds lease = contend_.ttl + contend_.transition;
  if (actor.goal == core::Goal::kOnce) {
    act(actor, sim_.dice().between(nanoseconds{0}, lease * 2), &Schedule::time_out);
  } else if (!is_calm() && sim_.dice().chance(0.7)) {
    const bool observes = actor.goal == core::Goal::kObserve;
    const bool at_once = observes && sim_.dice().chance(kStopsAtOnce);
    if (at_once) stop_in_the_midst(actor);
    const nanoseconds longest = at_once ? milliseconds{3} : lease * (observes ? 1 : 4);
    act(actor, sim_.dice().between(nanoseconds{0}, longest), &Schedule::stop_service);
  }
}

void Schedule::stop_service(Actor& actor) {
  if (is_calm()) return;
  tell(actor.name, " stops");
  engine_of(actor).stop(actor.who);
}

void Schedule::time_out(Actor& actor) {
  if (!actor.who->machine.is_waiting()) return;
  tell(actor.name, " gives up waiting");
  engine_of(actor).give_up(actor.who);
}

void Schedule::unlock(Actor& actor) {
  tell(actor.name, " unlocks");
  engine_of(actor).finish(actor.who);
}

// Something about it changed.
void Schedule::look(Actor& actor) {
  if (!actor.who) return;
  const Phase phase = actor.who->machine.phase();
  if (actor.calls || actor.in_call) {
    wait_here(actor);
  } else if (phase == Phase::kIdle) {
    const nanoseconds pause =
        is_calm() && actor.goal != core::Goal::kOnce ? nanoseconds{0} : seconds{5};
    begin(actor, sim_.dice().between(nanoseconds{0}, pause + nanoseconds{1}));
  } else if (phase == Phase::kHolding && actor.has_thread) {
    hold_here(actor);
  } else if (phase == Phase::kHolding && actor.goal == core::Goal::kOnce) {
    const nanoseconds lease = contend_.ttl + contend_.transition;
    act(actor,
        sim_.dice().between(nanoseconds{0}, sim_.dice().chance(0.5) ? lease : milliseconds{100}),
        &Schedule::unlock);
  }
}

void Schedule::on_notice(Actor& actor, const MutexState& state) {
  if (state.is_acquired()) {
    if (actor.told_acquired) violate("P4", actor.name + " was told on_acquired twice");
    actor.told_acquired = true;
    actor.works_for = state.self;
  }
  if (state.is_released()) {
    if (!actor.told_acquired)
      violate("P4", actor.name + " was told on_released without on_acquired");
    actor.told_acquired = false;
  }
  if (!work(actor, state)) return;
  if (state.is_released()) actor.works_for.clear();
}

// The callback of a service lasts: until it hears of its loss, or as long as it likes. False: its
// process did not outlive it.
bool Schedule::work(const Actor& actor, const MutexState& state) {
  if (!draw_.lasting_callbacks || is_calm()) return true;
  if (!state.is_acquired() && !state.is_released()) return true;
  const bool heeds = state.is_acquired() && sim_.dice().chance(kHeedsItsLoss);
  const nanoseconds longest = heeds ? kCalmFrom : timing_.lease();
  const World::Time until =
      std::min(kCalmFrom, sim_.now() + sim_.dice().between(nanoseconds{0}, longest));
  const std::stop_token lost = state.term.lost();
  return actor.process->last_until(
      [&] { return sim_.now() >= until || (heeds && lost.stop_requested()); });
}

SimResult simulate(std::uint64_t seed, const SimOptions& options) {
  return Schedule(seed, options).run();
}

}  // namespace simba::testing
