#include "testing/sim_node.h"

#include <algorithm>
#include <utility>

namespace simba::testing {

World::Time SimClock::when(LocalTime local) const {
  const nanoseconds since = local.time_since_epoch() - offset;
  nanoseconds guess{static_cast<nanoseconds::rep>(static_cast<double>(since.count()) / rate)};
  while (at(guess) < local) ++guess;
  return guess;
}

class SimNode::SimExecutor : public Executor {
 public:
  explicit SimExecutor(SimNode& node) : node_(node), world_(node.world_), clock_(node.clock_) {}

  LocalTime now() const noexcept override { return clock_.at(world_.now()); }
  std::uint64_t random() override { return node_.dice_.next(); }

  void start(std::function<void()> on_alarm) override { on_alarm_ = std::move(on_alarm); }

  void set_alarm(LocalTime at) override {
    if (at >= armed_) return;
    armed_ = at;
    const nanoseconds lag = node_.dice_.between(nanoseconds{0}, milliseconds{2});
    const World::Time when = std::max(clock_.when(std::max(at, now())), world_.now()) + lag;
    node_.post(when - world_.now(), [this, at] {
      if (armed_ != at) return;
      armed_ = LocalTime::max();
      on_alarm_();
    });
  }

  void call(Lane, std::shared_ptr<StoreCall> call) override {
    node_.post(nanoseconds{0}, [this, call = std::move(call)] { node_.carry_call(call); });
  }

  void callback(std::function<void()> task) override {
    const bool slow = node_.dice_.chance(node_.weather_.slow_callbacks);
    const nanoseconds longest = slow ? node_.weather_.slowest_callback : milliseconds{1};
    node_.post(node_.dice_.between(nanoseconds{0}, longest), std::move(task));
  }

  void revoke(std::function<void()> task) override {
    node_.post(node_.dice_.between(nanoseconds{0}, milliseconds{5}), std::move(task));
  }

  void shut_down() override {}

 private:
  SimNode& node_;
  World& world_;
  const SimClock clock_;
  std::function<void()> on_alarm_;
  LocalTime armed_ = LocalTime::max();
};

SimNode::SimNode(World& world, Dice& dice, std::shared_ptr<ModelServer> server,
                 const Weather& weather, const bool& server_up, SimClock clock)
    : world_(world),
      dice_(dice),
      server_(std::move(server)),
      weather_(weather),
      server_up_(server_up),
      clock_(clock) {}

void SimNode::boot() {
  ++life_;
  paused_ = false;
  running_since_ = world_.now();
  auto store = connect_model(server_, [this, life = life_](const std::function<void()>& hint) {
    if (life == life_) carry_hint(hint);
  });
  engine_ = std::make_shared<core::Engine>(std::move(store), std::make_shared<SimExecutor>(*this));
  engine_->open();
}

void SimNode::crash() {
  ++life_;
  engine_.reset();
  held_.clear();
  paused_ = false;
}

void SimNode::pause() { paused_ = true; }

void SimNode::resume() {
  if (!std::exchange(paused_, false)) return;
  running_since_ = world_.now();
  for (World::Task& task : std::exchange(held_, {})) post(nanoseconds{0}, std::move(task));
}

void SimNode::post(nanoseconds delay, World::Task task) {
  world_.after(delay, [this, life = life_, task = std::move(task)] { run(life, task); });
}

void SimNode::run(std::uint64_t life, World::Task task) {
  if (life != life_) return;
  if (paused_) {
    held_.push_back(std::move(task));
  } else {
    task();
  }
}

nanoseconds SimNode::one_way() {
  const bool slow = dice_.chance(weather_.slow);
  return dice_.between(weather_.latency_from, slow ? weather_.slowest : weather_.latency_to);
}

// A call in true time: it leaves, it may arrive, it may be answered, it may arrive again. An answer
// nobody waits for any more has changed the server all the same.
void SimNode::carry_call(const std::shared_ptr<StoreCall>& call) {
  ++calls;
  call->send();
  const World::Time deadline = std::max(clock_.when(call->deadline()), world_.now());
  const World::Time arrival = world_.now() + one_way();
  const bool hangs = dice_.chance(weather_.hanging);
  const World::Time patience = hangs ? deadline + weather_.slowest : deadline;
  const bool arrives = !is_cut && !dice_.chance(weather_.lost_requests);
  const auto time_out = [this, call, patience] {
    post(std::max(patience - world_.now(), nanoseconds{0}), [call] {
      call->lose();
      call->complete();
    });
  };
  if (!arrives || arrival > patience) time_out();
  if (!arrives) return;
  world_.at(arrival, [this, call, patience, time_out, life = life_] {
    const bool performed = server_up_;
    if (performed) call->perform();
    if (life != life_ || world_.now() > patience) return;
    if (!paused_ && dice_.chance(weather_.stopped)) {
      ++stops;
      pause();
      world_.after(dice_.between(nanoseconds{0}, weather_.longest_stop), [this] { resume(); });
    }
    const World::Time reply = world_.now() + one_way();
    const bool answers = performed && !is_cut && !dice_.chance(weather_.lost_replies);
    if (answers && reply <= patience) {
      post(reply - world_.now(), [call] { call->complete(); });
    } else {
      time_out();
    }
  });
  if (dice_.chance(weather_.doubled)) {
    world_.at(arrival + dice_.between(nanoseconds{0}, weather_.slowest), [this, call] {
      if (server_up_) call->perform();
    });
  }
}

void SimNode::carry_hint(const std::function<void()>& hint) {
  if (is_cut || dice_.chance(weather_.lost_hints)) return;
  post(one_way(), hint);
  if (dice_.chance(weather_.forged_hints))
    post(dice_.between(nanoseconds{0}, milliseconds{2000}), hint);
}

}  // namespace simba::testing
