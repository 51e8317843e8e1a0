#include "testing/sim_world.h"

#include <array>
#include <cstdio>
#include <utility>

namespace simba::testing {
namespace {

using std::chrono::seconds;

// A clock that starts within this many seconds from there on.
SimClock draw_clock(Dice& dice, int from, std::uint64_t span, double drift) {
  const seconds offset{from + static_cast<int>(dice.below(span))};
  return {offset, dice.between(1 - drift, 1 + drift)};
}

}  // namespace

SimWorld::SimWorld(std::uint64_t seed, const SimOptions& options) : SimWorld(Dice(seed), options) {}

SimWorld::SimWorld(const Dice& dice, const SimOptions& options)
    : options_(options),
      dice_(dice),
      server_clock_(draw_clock(dice_, 1000, 1000, options.largest_drift)),
      server_(std::make_shared<ModelServer>(options.kind, [this] {
        const LocalTime now = server_clock_.at(world_.now()) + server_step_;
        return StoreTime{std::chrono::duration_cast<milliseconds>(now.time_since_epoch())};
      })) {}

// Processes end first: what is destroyed with the events that never came finds nobody to talk to.
SimWorld::~SimWorld() { nodes_.clear(); }

SimNode& SimWorld::add_node(std::string name) {
  const SimClock clock = draw_clock(dice_, 0, 100'000, options_.largest_drift);
  nodes_.push_back(std::make_unique<SimNode>(*this, std::move(name), clock));
  return *nodes_.back();
}

bool SimWorld::step(World::Time end) {
  end_ = end;
  if (violation_ || !world_.step(end)) return false;
  if (++counts_.events > options_.most_events) {
    violate("progress", "the world spins: too much happens");
  }
  return true;
}

void SimWorld::run(World::Time end, const std::function<void()>& check) {
  check_ = &check;
  end_ = end;
  while (go_on()) {
  }
  check_ = nullptr;
}

bool SimWorld::go_on() {
  if (!step(end_)) return false;
  if (check_ && *check_) (*check_)();
  return true;
}

void SimWorld::violate(std::string_view promise, std::string_view what) {
  if (violation_) return;
  violation_ = Violation{std::string(promise), std::string(what), world_.now()};
  tell("VIOLATION of ", promise, ": ", what);
}

void SimWorld::stop_server() {
  if (!std::exchange(is_server_up_, false)) return;
  ++counts_.restarts;
  tell("the server is down");
}

void SimWorld::start_server() {
  if (!std::exchange(is_server_up_, true)) tell("the server is up");
}

void SimWorld::set_server_clock(nanoseconds forward) {
  server_step_ += forward;
  const milliseconds step = std::chrono::duration_cast<milliseconds>(forward);
  tell("the server's clock is set by ", std::to_string(step.count()), " ms");
}

Token SimWorld::replace_store() {
  tell("the store is replaced by an empty one");
  return server_->replace();
}

void SimWorld::write(const std::string& line) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%9.3f s  ",
                std::chrono::duration<double>(world_.now()).count());
  timeline_.push_back(time.data() + line);
}

}  // namespace simba::testing
