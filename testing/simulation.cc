#include "testing/simulation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "testing/sim_node.h"

namespace simba::testing {
namespace {

using std::chrono::seconds;
using Phase = core::Contention::Phase;

constexpr World::Time kCalmFrom = seconds{75};
constexpr World::Time kEnd = seconds{120};
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
  std::shared_ptr<core::TermRecord> term;
  bool owns = false;    // as of the last event
  bool lapsed = false;  // the term was seen to be over
  World::Time lapsed_at{};
  std::uint64_t round = 0;  // of its own plans: an old plan does nothing
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, const SimOptions& options);
  SimResult run();

 private:
  // What happens.
  void plan_faults();
  void plan_fault(World::Time at);
  void evict(std::size_t mutex);
  void calm_down();
  void crash(SimNode& node);
  void boot(std::size_t node);
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
  void check_exclusion();
  void check_takeover();
  void check_orphans();
  void check_write(const Claim& claim, bool is_release, const Observation& before,
                   const Observation& after);
  void violate(const char* promise, const std::string& what);

  std::string mutex_name(std::size_t mutex) const { return mutex == 0 ? "report" : "Report"; }
  std::size_t node_index(const SimNode& node) const;
  void tell(const std::string& line);
  bool is_calm() const { return world_.now() >= kCalmFrom; }

  const SimOptions options_;
  Dice dice_;
  World world_;
  Weather weather_;
  bool server_up_ = true;
  SimClock server_clock_;
  nanoseconds server_step_{};  // how far its clock was set forward or back
  World::Time last_step_{};
  std::shared_ptr<ModelServer> server_;
  ContendOptions contend_;
  Timing timing_{};
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::size_t mutexes_ = 1;
  bool one_label_ = false;
  bool slow_callbacks_ = false;
  std::array<Token, 2> highest_{};
  std::array<World::Time, 2> owned_at_{};
  std::array<World::Time, 2> orphan_since_{};
  std::set<std::string> dead_ids_;  // given up by processes that still live
  SimResult result_;
};

Schedule::Schedule(std::uint64_t seed, const SimOptions& options) : options_(options), dice_(seed) {
  const Lease lease = kLeases[dice_.below(kLeases.size())];
  contend_.ttl = lease.ttl;
  contend_.transition = lease.transition;
  if (options.kind == ModelKind::kSession && contend_.transition < seconds{2}) {
    contend_.transition = seconds{2};  // a place in line must outlive the polls that keep it
  }
  timing_ = Timing::of(contend_);
  weather_.slowest = lease.ttl + lease.transition;
  weather_.slowest_callback = lease.ttl;
  weather_.longest_stop = 2 * (lease.ttl + lease.transition);
  slow_callbacks_ = dice_.chance(0.5);
  one_label_ = dice_.chance(0.3);
  mutexes_ = 1 + dice_.below(2);
  server_clock_ = {seconds{static_cast<int>(1000 + dice_.below(1000))},
                   dice_.between(0.998, 1.002)};
  server_ = std::make_shared<ModelServer>(options.kind, [this] {
    const LocalTime now = server_clock_.at(world_.now()) + server_step_;
    return StoreTime{std::chrono::duration_cast<milliseconds>(now.time_since_epoch())};
  });
  server_->on_write(
      [this](const Claim& claim, bool is_release, const Observation& before,
             const Observation& after) { check_write(claim, is_release, before, after); });
  const std::size_t nodes = 2 + dice_.below(3);
  for (std::size_t i = 0; i < nodes; ++i) {
    const SimClock clock{seconds{static_cast<int>(dice_.below(100'000))},
                         dice_.between(0.998, 1.002)};
    nodes_.push_back(
        std::make_unique<SimNode>(world_, dice_, server_, weather_, server_up_, clock));
    for (std::size_t mutex = 0; mutex < mutexes_; ++mutex) {
      for (const core::Goal goal : {core::Goal::kKeep, core::Goal::kOnce}) {
        if (goal == core::Goal::kOnce && dice_.chance(0.5)) continue;
        auto actor = std::make_unique<Actor>();
        actor->node = i;
        actor->mutex = mutex;
        actor->goal = goal;
        actor->name = "n" + std::to_string(i) +
                      (goal == core::Goal::kKeep ? "-service-" : "-lock-") + std::to_string(mutex);
        actors_.push_back(std::move(actor));
      }
    }
    boot(i);
  }
  plan_faults();
}

SimResult Schedule::run() {
  while (!result_.violation && world_.step(kEnd)) {
    ++result_.events;
    check();
    if (result_.events > kMostEvents) violate("P6", "the engine spins");
  }
  for (const auto& node : nodes_) {
    result_.calls += node->calls;
    result_.pauses += node->stops;
  }
  return std::move(result_);
}

// --- what happens
// ---------------------------------------------------------------------------------

void Schedule::plan_faults() {
  const std::size_t faults = 6 + dice_.below(14);
  for (std::size_t i = 0; i < faults; ++i) plan_fault(dice_.between(seconds{1}, kCalmFrom));
  for (World::Time at = seconds{2}; at < kCalmFrom; at += seconds{8}) {
    world_.at(at, [this] {
      weather_.lost_requests = dice_.chance(0.4) ? dice_.between(0.0, 0.4) : 0;
      weather_.lost_replies = dice_.chance(0.4) ? dice_.between(0.0, 0.4) : 0;
      weather_.slow = dice_.chance(0.4) ? dice_.between(0.0, 0.3) : 0;
      weather_.doubled = dice_.chance(0.4) ? dice_.between(0.0, 0.5) : 0;
      weather_.hanging = dice_.chance(0.2) ? dice_.between(0.0, 0.3) : 0;
      weather_.slow_callbacks = slow_callbacks_ ? dice_.between(0.0, 0.5) : 0;
      weather_.stopped = dice_.chance(0.3) ? dice_.between(0.0, 0.1) : 0;
      weather_.lost_hints = dice_.between(0.0, 0.5);
      weather_.forged_hints = dice_.between(0.0, 0.5);
    });
  }
  world_.at(kCalmFrom, [this] { calm_down(); });
}

void Schedule::plan_fault(World::Time at) {
  const std::size_t victim = dice_.below(nodes_.size());
  const nanoseconds lease = contend_.ttl + contend_.transition;
  const nanoseconds duration = dice_.between(milliseconds{10}, lease * 3);
  const std::uint64_t kind = dice_.below(8);
  world_.at(at, [=, this] {
    SimNode& node = *nodes_[victim];
    switch (kind) {
      case 0:
        if (!node.is_up()) return;
        crash(node);
        world_.after(duration, [this, victim] { boot(victim); });
        return;
      case 1:
      case 2:
        if (!node.is_up() || node.is_paused()) return;
        ++result_.pauses;
        tell("node " + std::to_string(victim) + " is paused");
        node.pause();
        world_.after(duration, [this, victim] {
          tell("node " + std::to_string(victim) + " runs again");
          nodes_[victim]->resume();
        });
        return;
      case 3:
        ++result_.cuts;
        tell("node " + std::to_string(victim) + " is cut off");
        node.is_cut = true;
        world_.after(duration, [this, victim] {
          tell("node " + std::to_string(victim) + " is connected again");
          nodes_[victim]->is_cut = false;
        });
        return;
      case 4:
        ++result_.restarts;
        tell("the server is down");
        server_up_ = false;
        world_.after(std::min(duration, lease), [this] {
          tell("the server is up");
          server_up_ = true;
        });
        return;
      case 5: {
        // Forward steps within one lease, and the rates, stay inside the margin the guard pays for.
        if (world_.now() - last_step_ < lease * 2) return;
        last_step_ = world_.now();
        const nanoseconds margin = std::max<nanoseconds>(milliseconds{50}, lease / 100);
        const nanoseconds room = margin - lease / 200;
        server_step_ += dice_.chance(0.5) && room > nanoseconds{0}
                            ? dice_.between(nanoseconds{0}, room)
                            : -dice_.between(nanoseconds{0}, kLargestStepBack);
        tell("the server's clock is set");
        return;
      }
      case 6: {
        const std::string mutex = mutex_name(dice_.below(mutexes_));
        tell("a stranger locks the row of " + mutex);
        server_->block(mutex);
        world_.after(std::min(duration, lease), [this, mutex] {
          tell("the row of " + mutex + " is unlocked");
          server_->unblock(mutex);
        });
        return;
      }
      default:
        if (options_.kind != ModelKind::kForgetful) {
          evict(dice_.below(mutexes_));
          return;
        }
        server_->remember();
        world_.after(std::min(duration, lease), [this] {
          tell("the server fails over and forgets");
          server_->fail_over();
        });
    }
  });
}

// An operator takes the owner's name away and leaves the end of its lease.
void Schedule::evict(std::size_t mutex) {
  const Observation row = server_->peek(mutex_name(mutex));
  if (row.owner.id.empty()) return;
  tell("an operator evicts " + row.owner.id);
  server_->evict(mutex_name(mutex), row.owner.id, row.owner.token, Eviction::kKeepLease);
}

void Schedule::calm_down() {
  tell("--- the faults end ---");
  weather_ = Weather{};
  server_up_ = true;
  for (std::size_t mutex = 0; mutex < mutexes_; ++mutex) server_->unblock(mutex_name(mutex));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i]->is_cut = false;
    if (!nodes_[i]->is_up()) boot(i);
    nodes_[i]->resume();
  }
  owned_at_.fill(world_.now());
  orphan_since_.fill(kEnd);
  for (const auto& actor : actors_) {
    if (actor->goal == core::Goal::kKeep && actor->who->machine.phase() == Phase::kIdle)
      begin(*actor, {});
  }
}

void Schedule::crash(SimNode& node) {
  ++result_.crashes;
  const std::size_t index = node_index(node);
  tell("node " + std::to_string(index) + " crashes");
  for (const auto& actor : actors_) {
    if (actor->node != index) continue;
    dead_ids_.erase(actor->wire_id);
    *actor = Actor{actor->node, actor->mutex, actor->goal, actor->name, {}, {},
                   {},          {},           {},          {},          {}, actor->round + 1};
  }
  dead_ids_.clear();
  node.crash();
}

std::size_t Schedule::node_index(const SimNode& node) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].get() == &node) return i;
  }
  return 0;
}

void Schedule::boot(std::size_t node) {
  if (nodes_[node]->is_up()) return;
  tell("node " + std::to_string(node) + " boots");
  nodes_[node]->boot();
  for (const auto& actor : actors_) {
    if (actor->node != node) continue;
    enroll(*actor);
    begin(*actor, dice_.between(nanoseconds{0}, seconds{2}));
  }
}

void Schedule::enroll(Actor& actor) {
  core::Spec spec;
  spec.mutex = mutex_name(actor.mutex);
  spec.label = one_label_ ? "same" : actor.name;
  spec.options = contend_;
  spec.goal = actor.goal;
  if (actor.goal == core::Goal::kKeep) {
    spec.notify = [this, &actor](const MutexState& state) { on_notice(actor, state); };
  }
  spec.poke = [this, &actor, round = actor.round] {
    nodes_[actor.node]->post(nanoseconds{0}, [this, &actor] { look(actor); });
  };
  actor.who = nodes_[actor.node]->engine().enroll(std::move(spec));
}

// A plan of an actor that is dropped when a newer one is made.
void Schedule::act(Actor& actor, nanoseconds delay, void (Schedule::*what)(Actor&)) {
  const std::uint64_t round = ++actor.round;
  nodes_[actor.node]->post(delay, [this, &actor, round, what] {
    if (actor.round == round && actor.who) (this->*what)(actor);
  });
}

void Schedule::begin(Actor& actor, nanoseconds delay) { act(actor, delay, &Schedule::start); }

void Schedule::start(Actor& actor) {
  if (actor.who->machine.phase() != Phase::kIdle) return;
  nodes_[actor.node]->engine().start(actor.who);
  const nanoseconds lease = contend_.ttl + contend_.transition;
  if (actor.goal == core::Goal::kOnce) {
    act(actor, dice_.between(nanoseconds{0}, lease * 2), &Schedule::time_out);
  } else if (!is_calm() && dice_.chance(0.7)) {
    act(actor, dice_.between(nanoseconds{0}, lease * 4), &Schedule::stop_service);
  }
}

void Schedule::stop_service(Actor& actor) {
  if (is_calm()) return;
  tell(actor.name + " stops");
  nodes_[actor.node]->engine().stop(actor.who);
}

void Schedule::time_out(Actor& actor) {
  if (!actor.who->machine.is_waiting()) return;
  tell(actor.name + " gives up waiting");
  nodes_[actor.node]->engine().give_up(actor.who);
}

void Schedule::unlock(Actor& actor) {
  tell(actor.name + " unlocks");
  nodes_[actor.node]->engine().finish(actor.who);
}

// Something about it changed.
void Schedule::look(Actor& actor) {
  if (!actor.who) return;
  const Phase phase = actor.who->machine.phase();
  if (phase == Phase::kIdle) {
    const nanoseconds pause =
        is_calm() && actor.goal == core::Goal::kKeep ? nanoseconds{0} : seconds{5};
    begin(actor, dice_.between(nanoseconds{0}, pause + nanoseconds{1}));
  } else if (phase == Phase::kHolding && actor.goal == core::Goal::kOnce) {
    const nanoseconds lease = contend_.ttl + contend_.transition;
    act(actor, dice_.between(nanoseconds{0}, dice_.chance(0.5) ? lease : milliseconds{100}),
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
  if (machine.wire_id() != actor.wire_id) {
    const bool told = actor.goal == core::Goal::kOnce || !slow_callbacks_;
    const bool abandoned = actor.term && actor.term->wire_id == actor.wire_id &&
                           actor.term->loss().reason == LossReason::kAbandoned;
    if (told && !abandoned && !actor.wire_id.empty()) dead_ids_.insert(actor.wire_id);
    actor.wire_id = machine.wire_id();
  }
  if (actor.who->term != actor.term) {
    actor.term = actor.who->term;
    actor.lapsed = false;
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
    actor.lapsed_at = world_.now();
    tell(actor.name + " does not own any more (" + to_string(actor.term->loss().reason) + ")");
  }
  const SimNode& node = *nodes_[actor.node];
  if (actor.lapsed && !node.is_paused() && !actor.term->lost().stop_requested()) {
    const World::Time since = std::max(actor.lapsed_at, node.running_since());
    if (world_.now() - since > kRevokeBound)
      violate("P4", actor.name + " was not told of its loss");
  }
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
    owned_at_[actor->mutex] = world_.now();
  }
}

void Schedule::check_takeover() {
  // One lease from the last claim of a dead owner, which may have been on its way for another, by a
  // clock that was set back.
  const nanoseconds bound = 2 * timing_.lease() + kLargestStepBack + contend_.jitter.to +
                            2 * timing_.call_deadline + timing_.max_backoff + milliseconds{1500};
  for (std::size_t mutex = 0; mutex < mutexes_; ++mutex) {
    const nanoseconds gap = world_.now() - owned_at_[mutex];
    result_.longest_gap = std::max(result_.longest_gap, gap);
    if (gap > bound)
      violate("P6", "nobody owns " + mutex_name(mutex) + " although the faults have ended");
  }
}

// What a living process has given up is soon gone from the store.
void Schedule::check_orphans() {
  const nanoseconds bound =
      3 * timing_.call_deadline + 2 * timing_.max_backoff + kRarestPoll + milliseconds{500};
  for (std::size_t mutex = 0; mutex < mutexes_; ++mutex) {
    const Observation row = server_->peek(mutex_name(mutex));
    const bool orphan = !row.is_free() && dead_ids_.contains(row.owner.id);
    if (!orphan) {
      orphan_since_[mutex] = kEnd;
    } else if (orphan_since_[mutex] == kEnd) {
      orphan_since_[mutex] = world_.now();
    } else if (world_.now() - orphan_since_[mutex] > bound) {
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
  if (result_.violation) return;
  result_.violation = Violation{promise, what, world_.now()};
  tell(std::string("VIOLATION of ") + promise + ": " + what);
  for (std::size_t mutex = 0; mutex < mutexes_ && std::string(promise) != "P5"; ++mutex) {
    const Observation row = server_->peek(mutex_name(mutex));
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

void Schedule::tell(const std::string& line) {
  if (!options_.records_timeline) return;
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%9.3f s  ",
                std::chrono::duration<double>(world_.now()).count());
  result_.timeline.push_back(time.data() + line);
}

}  // namespace

SimResult simulate(std::uint64_t seed, const SimOptions& options) {
  return Schedule(seed, options).run();
}

}  // namespace simba::testing
