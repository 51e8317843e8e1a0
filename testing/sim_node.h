#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/engine.h"
#include "testing/dice.h"
#include "testing/model_store.h"
#include "testing/world.h"

namespace simba::testing {

// A clock that starts anywhere and runs a little too fast or too slow.
struct SimClock {
  nanoseconds offset{};
  double rate = 1.0;

  LocalTime at(World::Time when) const {
    return LocalTime{offset + nanoseconds{static_cast<nanoseconds::rep>(
                                  static_cast<double>(when.count()) * rate)}};
  }
  // The first true time at which this clock shows at least `local`.
  World::Time when(LocalTime local) const;
};

// How badly a network treats calls just now; each share is a probability per call.
struct Weather {
  nanoseconds latency_from{milliseconds{1} / 10};
  nanoseconds latency_to{milliseconds{3}};
  double lost_requests = 0;
  double lost_replies = 0;
  double slow = 0;     // one way takes up to `slowest`
  double doubled = 0;  // the request arrives again, up to `slowest` later
  double hanging = 0;  // the driver ignores its deadline
  double stopped =
      0;  // the process stands still while the answer is on its way, up to `longest_stop`
  nanoseconds longest_stop{};
  double slow_callbacks = 0;
  nanoseconds slowest{};
  nanoseconds slowest_callback{};
  double lost_hints = 0;
  double forged_hints = 0;
};

// One process: an engine on virtual time, with a clock of its own, that can be stopped, killed and
// cut off.
class SimNode {
 public:
  SimNode(World& world, Dice& dice, std::shared_ptr<ModelServer> server, const Weather& weather,
          const bool& server_up, SimClock clock);

  void boot();
  void crash();
  void pause();
  void resume();
  bool is_up() const { return engine_ != nullptr; }
  bool is_paused() const { return paused_; }
  bool is_cut = false;
  World::Time running_since() const { return running_since_; }

  // Something this process does: not while it is paused, not after it has crashed.
  void post(nanoseconds delay, World::Task task);

  core::Engine& engine() { return *engine_; }
  const SimClock& clock() const { return clock_; }
  World& world() { return world_; }
  std::uint64_t calls = 0;
  std::uint64_t stops = 0;

 private:
  class SimExecutor;
  void carry_hint(const std::function<void()>& hint);
  void carry_call(const std::shared_ptr<StoreCall>& call);
  nanoseconds one_way();
  void run(std::uint64_t life, World::Task task);

  World& world_;
  Dice& dice_;
  const std::shared_ptr<ModelServer> server_;
  const Weather& weather_;
  const bool& server_up_;
  const SimClock clock_;
  std::shared_ptr<core::Engine> engine_;
  std::uint64_t life_ = 0;
  bool paused_ = false;
  World::Time running_since_{};
  std::vector<World::Task> held_;  // until it is resumed
};

}  // namespace simba::testing
