#include "testing/simulation.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "core/engine.h"
#include "testing/sim_world.h"

namespace simba::testing {
namespace {

using std::chrono::seconds;
using Phase = core::Contention::Phase;

constexpr World::Time kCalmFrom = seconds{75};
constexpr World::Time kEnd = seconds{120};
constexpr nanoseconds kCalmLastsBeforeTheKill = seconds{20};
constexpr nanoseconds kTakeoverSlack = milliseconds{500};
constexpr double kForking = 0.05;  // a real child costs as much as a whole schedule
constexpr std::uint64_t kMostEvents = 100'000;
constexpr nanoseconds kRevokeBound = milliseconds{50};
constexpr nanoseconds kLargestStepBack = seconds{3};
constexpr nanoseconds kRarestPoll = seconds{5};

struct Lease {
  milliseconds ttl, transition;
};
constexpr std::array<Lease, 6> kLeases{{{milliseconds{10'000}, milliseconds{6'000}},
                                        {milliseconds{10'000}, milliseconds{6'000}},
                                        {milliseconds{3'000}, milliseconds{5'000}},
                                        {milliseconds{5'000}, milliseconds{2'000}},
                                        {milliseconds{8'000}, milliseconds{0}},
                                        {milliseconds{2'000}, milliseconds{1'000}}}};

// Somebody who contends, with what it saw of its own terms.
struct Actor {
  std::size_t node = 0;
  std::size_t mutex = 0;
  core::Goal goal = core::Goal::kKeep;
  std::string name;
  std::shared_ptr<core::Enrolled> who;  // null while its process is down
  bool told_acquired = false;           // on_acquired without on_released yet
  std::string wire_id;                  // the last one seen
  std::uint64_t attempt = 0;            // of that one
  std::shared_ptr<core::TermRecord> term;
  std::stop_token lost;  // of the term; a service takes it at once, a lock only when it is over
  bool owns = false;     // as of the last event
  bool lapsed = false;   // the term was seen to be over
  bool heard = false;    // and its stop token was requested
  World::Time lapsed_at{};
  std::uint64_t round = 0;  // of its own plans: an old plan does nothing
};

// What a seed decides before anything happens.
struct Draw {
  Draw(std::uint64_t seed, ModelKind kind);

  Dice dice;
  ContendOptions contend;
  bool slow_callbacks = false;
  bool one_label = false;
  std::size_t mutexes = 1;
  std::optional<World::Time> fork_at;
};

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
}

class Schedule {
 public:
  Schedule(std::uint64_t seed, const SimOptions& options);
  SimResult run();

 private:
  // What happens.
  void add_node(std::size_t index);
  void boot(std::size_t node);
  void on_crash(std::size_t node);
  void when_calm();
  void kill_an_owner();
  void fork_a_child();
  int look_around_in_child();
  void enroll(Actor& actor);
  void begin(Actor& actor, nanoseconds delay);
  void act(Actor& actor, nanoseconds delay, void (Schedule::*what)(Actor&));
  void start(Actor& actor);
  void stop_service(Actor& actor);
  void time_out(Actor& actor);
  void unlock(Actor& actor);
  void look(Actor& actor);
  void on_notice(Actor& actor, const MutexState& state);

  // What must hold.
  void check();
  void check_actor(Actor& actor);
  void check_loss(Actor& actor);
  void note_wire_id(Actor& actor);
  void check_exclusion();
  void check_takeover();
  void check_orphans();
  void check_write(const Claim& claim, bool is_release, const Observation& before,
                   const Observation& after);
  void violate(const char* promise, const std::string& what);

  std::string mutex_name(std::size_t mutex) const { return mutex == 0 ? "report" : "Report"; }
  void tell(const std::string& line) { sim_.tell(line); }
  bool is_calm() const { return sim_.now() >= kCalmFrom; }

  const Draw draw_;
  const ContendOptions& contend_ = draw_.contend;
  const Timing timing_ = Timing::of(contend_);
  SimWorld sim_;
  std::vector<std::shared_ptr<core::Engine>> engines_;  // by node; null while it is down
  std::vector<std::unique_ptr<Actor>> actors_;
  std::array<Token, 2> highest_{};
  std::array<World::Time, 2> owned_at_{};
  std::array<World::Time, 2> orphan_since_{};
  std::array<std::string, 2> bereft_of_;  // its owner, killed in the calm
  std::set<std::string> dead_ids_;        // given up by processes that still live
  SimResult result_;
};

Schedule::Schedule(std::uint64_t seed, const SimOptions& options)
    : draw_(seed, options.kind), sim_(draw_.dice, options) {
  sim_.server().on_write(
      [this](const Claim& claim, bool is_release, const Observation& before,
             const Observation& after) { check_write(claim, is_release, before, after); });
  sim_.on_crash([this](const SimNode& node) {
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (sim_.nodes()[i].get() == &node) on_crash(i);
    }
  });
  const std::size_t nodes = 2 + sim_.dice().below(3);
  for (std::size_t i = 0; i < nodes; ++i) add_node(i);
  FaultPlan faults;
  faults.until = kCalmFrom;
  faults.lease = timing_.lease();
  for (std::size_t i = 0; i < draw_.mutexes; ++i) faults.mutexes.push_back(mutex_name(i));
  if (draw_.slow_callbacks) faults.slowest_callback = contend_.ttl;
  faults.then = [this] { when_calm(); };
  sim_.plan_faults(std::move(faults));
  if (draw_.fork_at) sim_.world().at(*draw_.fork_at, [this] { fork_a_child(); });
}

void Schedule::add_node(std::size_t index) {
  const std::string number = std::to_string(index);
  SimNode& node = sim_.add_node("node " + number);
  engines_.emplace_back();
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    for (const core::Goal goal : {core::Goal::kKeep, core::Goal::kOnce}) {
      if (goal == core::Goal::kOnce && sim_.dice().chance(0.5)) continue;
      auto actor = std::make_unique<Actor>();
      actor->node = index;
      actor->mutex = mutex;
      actor->goal = goal;
      actor->name = "n" + number + (goal == core::Goal::kKeep ? "-service-" : "-lock-") +
                    std::to_string(mutex);
      actors_.push_back(std::move(actor));
    }
  }
  node.run([this, index](SimNode&) {
    boot(index);
    return nullptr;  // what it has is in engines_: unlike a user's it can be destroyed
  });
}

SimResult Schedule::run() {
  while (sim_.step(kEnd)) {
    check();
    if (sim_.counts().events > kMostEvents) violate("P6", "the engine spins");
  }
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

// --- what happens
// ---------------------------------------------------------------------------------

void Schedule::boot(std::size_t node) {
  SimNode& process = *sim_.nodes()[node];
  engines_[node] = std::make_shared<core::Engine>(process.connect(), process.make_executor());
  engines_[node]->open();
  for (const auto& actor : actors_) {
    if (actor->node != node) continue;
    enroll(*actor);
    begin(*actor, sim_.dice().between(nanoseconds{0}, seconds{2}));
  }
}

void Schedule::on_crash(std::size_t node) {
  for (const auto& actor : actors_) {
    if (actor->node != node) continue;
    Actor forgotten;  // all but who it is
    forgotten.node = node;
    forgotten.mutex = actor->mutex;
    forgotten.goal = actor->goal;
    forgotten.name = actor->name;
    forgotten.round = actor->round + 1;
    *actor = std::move(forgotten);
  }
  dead_ids_.clear();
  engines_[node].reset();
}

void Schedule::when_calm() {
  owned_at_.fill(sim_.now());
  orphan_since_.fill(kEnd);
  for (const auto& actor : actors_) {
    if (actor->goal == core::Goal::kKeep && actor->who->machine.phase() == Phase::kIdle)
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

int Schedule::look_around_in_child() {
  for (const auto& actor : actors_) {
    if (!actor->term) continue;
    if (actor->term->is_owner() || actor->term->is_in_ttl()) return 1;
    if (!actor->term->lost().stop_requested()) return 1;
  }
  const std::uint64_t calls = sim_.counts().calls;
  for (auto& engine : engines_) {
    if (engine) engine->close(nanoseconds{0});
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
    spec.notify = [this, &actor](const MutexState& state) { on_notice(actor, state); };
  }
  spec.poke = [this, &actor, round = actor.round] {
    sim_.nodes()[actor.node]->post(nanoseconds{0}, [this, &actor] { look(actor); });
  };
  actor.who = engines_[actor.node]->enroll(std::move(spec));
}

// A plan of an actor that is dropped when a newer one is made.
void Schedule::act(Actor& actor, nanoseconds delay, void (Schedule::*what)(Actor&)) {
  const std::uint64_t round = ++actor.round;
  sim_.nodes()[actor.node]->post(delay, [this, &actor, round, what] {
    if (actor.round == round && actor.who) (this->*what)(actor);
  });
}

void Schedule::begin(Actor& actor, nanoseconds delay) { act(actor, delay, &Schedule::start); }

void Schedule::start(Actor& actor) {
  if (actor.who->machine.phase() != Phase::kIdle) return;
  engines_[actor.node]->start(actor.who);
  const nanoseconds lease = contend_.ttl + contend_.transition;
  if (actor.goal == core::Goal::kOnce) {
    act(actor, sim_.dice().between(nanoseconds{0}, lease * 2), &Schedule::time_out);
  } else if (!is_calm() && sim_.dice().chance(0.7)) {
    act(actor, sim_.dice().between(nanoseconds{0}, lease * 4), &Schedule::stop_service);
  }
}

void Schedule::stop_service(Actor& actor) {
  if (is_calm()) return;
  tell(actor.name + " stops");
  engines_[actor.node]->stop(actor.who);
}

void Schedule::time_out(Actor& actor) {
  if (!actor.who->machine.is_waiting()) return;
  tell(actor.name + " gives up waiting");
  engines_[actor.node]->give_up(actor.who);
}

void Schedule::unlock(Actor& actor) {
  tell(actor.name + " unlocks");
  engines_[actor.node]->finish(actor.who);
}

// Something about it changed.
void Schedule::look(Actor& actor) {
  if (!actor.who) return;
  const Phase phase = actor.who->machine.phase();
  if (phase == Phase::kIdle) {
    const nanoseconds pause =
        is_calm() && actor.goal == core::Goal::kKeep ? nanoseconds{0} : seconds{5};
    begin(actor, sim_.dice().between(nanoseconds{0}, pause + nanoseconds{1}));
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
  }
  if (state.is_released()) {
    if (!actor.told_acquired)
      violate("P4", actor.name + " was told on_released without on_acquired");
    actor.told_acquired = false;
  }
}

// --- what must hold
// -------------------------------------------------------------------------------

void Schedule::check() {
  for (const auto& actor : actors_) {
    if (actor->who) check_actor(*actor);
  }
  check_exclusion();
  if (is_calm()) {
    check_takeover();
    check_orphans();
  }
}

void Schedule::check_actor(Actor& actor) {
  const core::Contention& machine = actor.who->machine;
  // Asked after every event: long ids are compared only when they may differ.
  const bool may_differ =
      machine.attempt() != actor.attempt || machine.wire_id().size() != actor.wire_id.size();
  if (may_differ) note_wire_id(actor);
  if (actor.who->term != actor.term) {
    actor.term = actor.who->term;
    actor.lost = actor.goal == core::Goal::kKeep ? actor.term->lost() : std::stop_token{};
    actor.lapsed = actor.heard = false;
    ++result_.terms;
    tell(actor.name + " owns " + actor.term->mutex + ", token " +
         std::to_string(actor.term->token));
    Token& highest = highest_[actor.mutex];
    if (actor.term->token <= highest) {
      violate("P2",
              "token " + std::to_string(actor.term->token) + " after " + std::to_string(highest));
    }
    highest = std::max(highest, actor.term->token);
  }
  if (!actor.term) return;
  const bool owns = actor.owns = actor.term->is_owner();
  if (owns && actor.lapsed) violate("P4", actor.name + " owns again under a term that was over");
  if (owns && machine.phase() == Phase::kIdle &&
      actor.term->loss().reason != LossReason::kAbandoned) {
    violate("P4", actor.name + " has stopped and still owns");
  }
  if (!owns && !actor.lapsed) {
    actor.lapsed = true;
    actor.lapsed_at = sim_.now();
    tell(actor.name + " does not own any more (" + to_string(actor.term->loss().reason) + ")");
  }
  if (actor.lapsed && !actor.heard) check_loss(actor);
}

void Schedule::check_loss(Actor& actor) {
  const SimNode& node = *sim_.nodes()[actor.node];
  if (node.is_paused()) return;
  if (!actor.lost.stop_possible()) actor.lost = actor.term->lost();
  actor.heard = actor.lost.stop_requested();
  const World::Time since = std::max(actor.lapsed_at, node.running_since());
  if (!actor.heard && sim_.now() - since > kRevokeBound)
    violate("P4", actor.name + " was not told of its loss");
}

void Schedule::note_wire_id(Actor& actor) {
  const core::Contention& machine = actor.who->machine;
  actor.attempt = machine.attempt();
  if (machine.wire_id() == actor.wire_id) return;
  const bool told = actor.goal == core::Goal::kOnce || !draw_.slow_callbacks;
  const bool abandoned = actor.term && actor.term->wire_id == actor.wire_id &&
                         actor.term->loss().reason == LossReason::kAbandoned;
  if (told && !abandoned && !actor.wire_id.empty()) dead_ids_.insert(actor.wire_id);
  actor.wire_id = machine.wire_id();
}

void Schedule::check_exclusion() {
  std::array<const Actor*, 2> in_ttl{}, owner{};
  for (const auto& actor : actors_) {
    if (!actor->who || !actor->owns) continue;
    const Actor*& other = owner[actor->mutex];
    if (other) violate("P1b", other->name + " and " + actor->name + " own");
    other = actor.get();
    if (!actor->term->is_in_ttl()) continue;
    const Actor*& second = in_ttl[actor->mutex];
    if (second) violate("P1", second->name + " and " + actor->name + " are in their ttl");
    second = actor.get();
    owned_at_[actor->mutex] = sim_.now();
  }
}

void Schedule::check_takeover() {
  // One lease from the last claim of a dead owner, which may have been on its way for another, by a
  // clock that was set back.
  const nanoseconds bound = 2 * timing_.lease() + kLargestStepBack + contend_.jitter.to +
                            2 * timing_.call_deadline + timing_.max_backoff + milliseconds{1500};
  // The model of a queue tells nobody that the first in line has ended: the next one asks.
  const bool is_queue = sim_.options().kind == ModelKind::kSession;
  const nanoseconds unseen = is_queue ? kRarestPoll : nanoseconds{0};
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    const nanoseconds gap = sim_.now() - owned_at_[mutex];
    result_.longest_gap = std::max(result_.longest_gap, gap);
    if (gap > bound)
      violate("P6", "nobody owns " + mutex_name(mutex) + " although the faults have ended");
    if (bereft_of_[mutex].empty()) continue;
    const Observation row = sim_.server().peek(mutex_name(mutex));
    if (row.owner.id != bereft_of_[mutex]) {
      bereft_of_[mutex].clear();
    } else if (row.now - row.owner.transition_at > contend_.jitter.to + kTakeoverSlack + unseen) {
      violate("P6", "nobody took " + mutex_name(mutex) + " over from its killed owner");
    }
  }
}

// What a living process has given up is soon gone from the store.
void Schedule::check_orphans() {
  const nanoseconds bound =
      3 * timing_.call_deadline + 2 * timing_.max_backoff + kRarestPoll + milliseconds{500};
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    const Observation row = sim_.server().peek(mutex_name(mutex));
    const bool orphan = !row.is_free() && dead_ids_.contains(row.owner.id);
    if (!orphan) {
      orphan_since_[mutex] = kEnd;
    } else if (orphan_since_[mutex] == kEnd) {
      orphan_since_[mutex] = sim_.now();
    } else if (sim_.now() - orphan_since_[mutex] > bound) {
      violate("P6", "a given up " + row.owner.id + " still stands in the store");
    }
  }
}

// P5: a write changes nothing of a running term but the one it names.
void Schedule::check_write(const Claim& claim, bool is_release, const Observation& before,
                           const Observation& after) {
  const bool named = before.owner.is_owner(claim.wire_id) &&
                     (claim.token == 0 || claim.token == before.owner.token);
  if (before.is_free() || before.owner == after.owner || named) return;
  violate("P5", std::string(is_release       ? "a release"
                            : claim.renews() ? "a renewal"
                                             : "a take") +
                    " of " + std::string(claim.wire_id) + " changed the term of " +
                    before.owner.id);
}

void Schedule::violate(const char* promise, const std::string& what) {
  if (sim_.violation()) return;
  sim_.violate(promise, what);
  for (std::size_t mutex = 0; mutex < draw_.mutexes && std::string(promise) != "P5"; ++mutex) {
    const Observation row = sim_.server().peek(mutex_name(mutex));
    tell("  the store: " + mutex_name(mutex) +
         (row.is_free() ? " is free" : " is held by " + row.owner.id));
  }
  for (const auto& actor : actors_) {
    if (!actor->who) continue;
    tell("  " + actor->name + ": phase " +
         std::to_string(static_cast<int>(actor->who->machine.phase())) + ", " +
         actor->who->machine.wire_id());
  }
}

}  // namespace

SimResult simulate(std::uint64_t seed, const SimOptions& options) {
  return Schedule(seed, options).run();
}

}  // namespace simba::testing
