#include "testing/faults.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "testing/sim_world.h"

namespace simba::testing {
namespace {

using std::chrono::seconds;

constexpr nanoseconds kFirst = seconds{1};
constexpr nanoseconds kUsualSpan = seconds{75};
constexpr nanoseconds kWeatherLasts = seconds{8};
constexpr nanoseconds kLargestStepBack = seconds{3};
constexpr double kShort = 0.4;
constexpr double kLull = 0.2;

// A plan under way; the events it has planned keep it.
class Faults : public std::enable_shared_from_this<Faults> {
 public:
  Faults(SimWorld& sim, FaultPlan plan)
      : sim_(sim), dice_(sim.dice()), plan_(std::move(plan)), began_(sim.now()) {}

  void plan();

 private:
  void plan_fault(World::Time at);
  void happen(std::uint64_t kind, SimNode& victim, nanoseconds duration);
  void change_weather();
  void step_clock();
  void block_a_row(nanoseconds duration);
  void evict_an_owner();
  void fail_over(nanoseconds duration);
  void calm_down();

  SimWorld& sim_;
  Dice& dice_;
  const FaultPlan plan_;
  const World::Time began_;
  World::Time last_step_{};
};

void Faults::plan() {
  const nanoseconds span = plan_.until - began_;
  const auto faults = static_cast<nanoseconds::rep>(6 + dice_.below(14));
  const bool has_victims = span > kFirst && !sim_.nodes().empty();
  const auto planned = has_victims ? faults * span / kUsualSpan : 0;
  for (nanoseconds::rep i = 0; i < planned; ++i) {
    plan_fault(dice_.between(began_ + kFirst, plan_.until));
  }
  const auto self = shared_from_this();
  if (plan_.bad_network) {
    Weather& weather = sim_.weather();
    weather.slowest = plan_.lease;
    weather.slowest_callback = plan_.slowest_callback;
    weather.longest_stop = 2 * plan_.lease;
    for (World::Time at = began_ + 2 * kFirst; at < plan_.until; at += kWeatherLasts) {
      sim_.world().at(at, [self] { self->change_weather(); });
    }
  }
  sim_.world().at(plan_.until, [self] { self->calm_down(); });
}

void Faults::plan_fault(World::Time at) {
  SimNode& victim = *sim_.nodes()[dice_.below(sim_.nodes().size())];
  // A short one is over while leases still run: what it has prevented must be made up for.
  const nanoseconds longest = dice_.chance(kShort) ? plan_.lease / 4 : plan_.lease * 3;
  const nanoseconds duration = dice_.between(milliseconds{10}, longest);
  const std::uint64_t kind = dice_.below(8);
  sim_.world().at(at, [self = shared_from_this(), &victim, duration, kind] {
    self->happen(kind, victim, duration);
  });
}

void Faults::happen(std::uint64_t kind, SimNode& victim, nanoseconds duration) {
  World& world = sim_.world();
  switch (kind) {
    case 0:
      if (!plan_.crashes || !victim.is_up()) return;
      victim.crash();
      world.after(duration, [&victim] { victim.boot(); });
      return;
    case 1:
    case 2:
      if (!plan_.pauses || !victim.is_up() || victim.is_paused()) return;
      victim.pause();
      world.after(duration, [&victim] { victim.resume(); });
      return;
    case 3:
      if (!plan_.cuts) return;
      victim.cut_off();
      world.after(duration, [&victim] { victim.reconnect(); });
      return;
    case 4:
      if (!plan_.restarts) return;
      sim_.stop_server();
      world.after(std::min(duration, plan_.lease), [&sim = sim_] { sim.start_server(); });
      return;
    case 5:
      if (plan_.clock_steps) step_clock();
      return;
    case 6:
      if (plan_.blocked_rows) block_a_row(duration);
      return;
    default:
      if (!plan_.evictions) return;
      // Two kinds of trouble that a plan has apart: what an operator frees, no fail-over brings
      // back.
      if (sim_.options().kind == ModelKind::kForgetful && !sim_.options().frees_at_once) {
        fail_over(duration);
      } else {
        evict_an_owner();
      }
  }
}

void Faults::change_weather() {
  Weather& weather = sim_.weather();
  weather.lost_requests = dice_.chance(0.4) ? dice_.between(0.0, 0.4) : 0;
  weather.lost_replies = dice_.chance(0.4) ? dice_.between(0.0, 0.4) : 0;
  weather.slow = dice_.chance(0.4) ? dice_.between(0.0, 0.3) : 0;
  weather.doubled = dice_.chance(0.4) ? dice_.between(0.0, 0.5) : 0;
  weather.hanging = dice_.chance(0.2) ? dice_.between(0.0, 0.3) : 0;
  weather.slow_callbacks = plan_.slowest_callback > nanoseconds{0} ? dice_.between(0.0, 0.5) : 0;
  weather.stopped = dice_.chance(0.3) ? dice_.between(0.0, 0.1) : 0;
  if (!plan_.pauses) weather.stopped = 0;
  weather.lost_hints = dice_.between(0.0, 0.5);
  weather.forged_hints = dice_.between(0.0, 0.5);
  // Between two storms there is time to make up for what the first has left behind.
  if (dice_.chance(kLull)) weather.hold_off();
}

// Forward steps within one lease, and the rates, stay inside the margin the guard pays for.
void Faults::step_clock() {
  if (sim_.now() - last_step_ < plan_.lease * 2) return;
  last_step_ = sim_.now();
  const nanoseconds margin = std::max<nanoseconds>(milliseconds{50}, plan_.lease / 100);
  const nanoseconds room = margin - plan_.lease / 200;
  sim_.set_server_clock(dice_.chance(0.5) && room > nanoseconds{0}
                            ? dice_.between(nanoseconds{0}, room)
                            : -dice_.between(nanoseconds{0}, kLargestStepBack));
}

void Faults::block_a_row(nanoseconds duration) {
  if (plan_.mutexes.empty()) return;
  const std::string& mutex = plan_.mutexes[dice_.below(plan_.mutexes.size())];
  sim_.tell("a stranger locks the row of ", mutex);
  sim_.server().block(mutex);
  sim_.world().after(std::min(duration, plan_.lease), [self = shared_from_this(), &mutex] {
    self->sim_.tell("the row of ", mutex, " is unlocked");
    self->sim_.server().unblock(mutex);
  });
}

// An operator takes the owner's name away and leaves the end of its lease, if he waits for it.
void Faults::evict_an_owner() {
  if (plan_.mutexes.empty()) return;
  const std::string& mutex = plan_.mutexes[dice_.below(plan_.mutexes.size())];
  const Observation row = sim_.server().peek(mutex);
  if (row.owner.id.empty()) return;
  sim_.tell("an operator evicts ", row.owner.id);
  sim_.server().evict(mutex, row.owner.id, row.owner.token,
                      sim_.options().frees_at_once ? Eviction::kFreeNow : Eviction::kKeepLease);
}

void Faults::fail_over(nanoseconds duration) {
  sim_.server().remember();
  sim_.world().after(std::min(duration, plan_.lease), [self = shared_from_this()] {
    SimWorld& sim = self->sim_;
    sim.tell("the server fails over and forgets");
    sim.server().fail_over();
    if (!self->plan_.successors_are_behind) return;
    sim.set_server_clock(-self->dice_.between(nanoseconds{0}, kLargestStepBack));
  });
}

void Faults::calm_down() {
  sim_.tell("--- the faults end ---");
  sim_.weather() = Weather{};
  sim_.start_server();
  for (const std::string& mutex : plan_.mutexes) sim_.server().unblock(mutex);
  for (const auto& node : sim_.nodes()) {
    node->reconnect();
    node->boot();
    node->resume();
  }
  if (plan_.then) plan_.then();
}

}  // namespace

void SimWorld::plan_faults(FaultPlan plan) {
  std::make_shared<Faults>(*this, std::move(plan))->plan();
}

}  // namespace simba::testing
