#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simba/testing/dice.h"
#include "simba/testing/faults.h"
#include "simba/testing/model_store.h"
#include "simba/testing/sim_node.h"
#include "simba/testing/world.h"

// Your own code in a simulated world: a server, processes with clocks that drift, and faults. One
// 64-bit seed is one schedule, and plays the same each time.
//
//   SimWorld world{seed};
//   world.add_node("a").run([&](SimNode& node) {
//     return std::make_shared<Replica>(node, ledger);
//   });
//   world.add_node("b").run(...);
//   world.plan_faults({.lease = 16s, .mutexes = {"ledger"}});
//   world.run(120s, [&] {
//     if (ledger.is_wrong()) world.violate("ledger", "an old owner wrote");
//   });
//
// A Replica makes a simba::Client with node.client(), whatever it likes from that, and lets time
// pass with node.post(). attack() in <simba/testing/attack.h> tries many seeds and replays the one
// that breaks something. Link simba::simulation; docs/simulation.md has a whole example.
//
// What works: MutexContendService, MutexRetrievalService, acquire_async, co_await acquire, terms
// and their tokens, with the engine that ships. Callbacks take no virtual time of their own: work
// that takes some goes on in node.post(), or in the callback with node.last_until().
//
// What does not, because it waits for a real clock or keeps the one thread there is:
// - SimbaLocker and Scheduler, and an on_acquired that waits for lost() otherwise than that.
// - stop() and close() of a service begin the end and do not wait for it; it comes as time passes.
//   The same holds for its destructor.
// - observe, list and evict of a Client are answered at once: no fault befalls them.
// A schedule repeats itself only when your code reads no other clock, no other randomness than
// dice(), and does nothing in the order of addresses.
namespace simba::testing {

struct SimOptions {
  ModelKind kind = ModelKind::kLease;
  bool records_timeline = false;
  bool frees_at_once = false;  // operators do not wait for the end of a lease: breaks P1
  // Of the rate of each clock. The guard pays for 1 % between two, less what the server's clock is
  // set forward: with clock steps in the plan of faults, no more than this.
  double largest_drift = 0.002;
  std::uint64_t most_events = 1'000'000;  // more than that is a violation: something spins
};

// What was broken, in whose name.
struct Violation {
  std::string promise;  // "P1"
  std::string what;
  nanoseconds at{};
};

// Threads: one. Worlds know nothing of each other: each may have a thread of its own.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed, const SimOptions& options = {});
  // The same, with dice that were thrown before.
  SimWorld(const Dice& dice, const SimOptions& options);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  // A process, not booted yet. Lives as long as the world.
  SimNode& add_node(std::string name);
  const std::vector<std::unique_ptr<SimNode>>& nodes() const { return nodes_; }
  // Called when a process crashes, before it is gone: for what your checks remember of it.
  void on_crash(std::function<void(SimNode&)> hook) { on_crash_ = std::move(hook); }

  // Faults from a second from now on. Without a plan there are none but those you make yourself.
  void plan_faults(FaultPlan plan);

  // The next thing that happens; false when there is none before `end`, or something is broken.
  bool step(World::Time end);
  // Steps until then, and checks after every step.
  void run(World::Time end, const std::function<void()>& check = {});
  // The same from within something that happens: one step more of what is under way.
  bool go_on();
  // Something is broken: the first one counts, and nothing happens after it.
  void violate(std::string_view promise, std::string_view what);
  const std::optional<Violation>& violation() const { return violation_; }

  // A line of the timeline. Nothing is put together where none is recorded.
  template <class... Parts>
  void tell(const Parts&... parts) {
    if (!options_.records_timeline) return;
    std::string line;
    (line.append(std::string_view(parts)), ...);
    write(line);
  }
  const std::vector<std::string>& timeline() const { return timeline_; }

  // True time, and what happens in it whatever becomes of any process: a message under way.
  World& world() { return world_; }
  World::Time now() const { return world_.now(); }
  Dice& dice() { return dice_; }
  Weather& weather() { return weather_; }
  const SimOptions& options() const { return options_; }

  ModelServer& server() { return *server_; }
  bool is_server_up() const { return is_server_up_; }
  // In the midst of a write: the call was doubled on the way, and this is the second of the two.
  bool is_copy() const { return is_copy_; }
  void stop_server();
  void start_server();
  void set_server_clock(nanoseconds forward);  // or back
  // What the server has is gone, and every process is told so with its next answer
  // (Errc::kReplaced). Two own until each has been told: P1 is broken, among terms of the two
  // stores. The last token of the old one.
  Token replace_store();

  struct Counts {
    std::uint64_t events = 0, calls = 0, crashes = 0, pauses = 0, restarts = 0, cuts = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  friend class SimNode;
  void write(const std::string& line);

  const SimOptions options_;
  Dice dice_;
  World world_;
  Weather weather_;
  bool is_server_up_ = true;
  bool is_copy_ = false;
  const SimClock server_clock_;
  nanoseconds server_step_{};  // how far its clock was set forward or back
  const std::shared_ptr<ModelServer> server_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::function<void(SimNode&)> on_crash_;
  std::optional<Violation> violation_;
  std::vector<std::string> timeline_;
  Counts counts_;
  World::Time end_{};                             // of what is under way
  const std::function<void()>* check_ = nullptr;  // after its steps
};

}  // namespace simba::testing
