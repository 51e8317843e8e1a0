#include "testing/sim_node.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "testing/own_call.h"
#include "testing/sim_world.h"

namespace simba::testing {
namespace {

// What the clock of a dead process shows: every deadline of it has passed.
constexpr LocalTime kAfterAll{std::chrono::hours{24 * 365 * 100}};

// The memory of dead processes stays. Its destructors would act as the process never did, and that
// of an active service waits for a time that nobody lets pass any more.
void leave_behind(std::shared_ptr<void> memory) {
  static std::mutex guard;
  static auto* const dead = new std::vector<std::shared_ptr<void>>;  // guarded by guard
  if (!memory) return;
  const std::lock_guard lock(guard);
  dead->push_back(std::move(memory));
}

}  // namespace

World::Time SimClock::when(LocalTime local) const {
  const nanoseconds since = local.time_since_epoch() - offset;
  nanoseconds guess{static_cast<nanoseconds::rep>(static_cast<double>(since.count()) / rate)};
  while (at(guess) < local) ++guess;
  return guess;
}

template <typename Body>
void SimNode::post(nanoseconds delay, const SimExecutor* owner, Body body) {
  world_.after(delay, [this, life = life_, owner, body = std::move(body)]() mutable {
    run_task(life, owner, body);
  });
}

class SimNode::SimExecutor : public Executor {
 public:
  explicit SimExecutor(SimNode& node) : node_(&node) {}

  // The process is gone: nothing of it happens any more.
  void die() {
    node_ = nullptr;
    requests_.clear();
  }
  bool is_shut_down() const { return is_shut_down_; }

  LocalTime now() const noexcept override { return node_ ? node_->now() : kAfterAll; }
  std::uint64_t random() override { return node_ ? node_->sim_.dice().next() : 0; }

  void start(std::function<void()> on_alarm) override { on_alarm_ = std::move(on_alarm); }

  void set_alarm(LocalTime at) override {
    if (at >= armed_ || !node_) return;
    armed_ = at;
    const World& world = node_->world_;
    const nanoseconds lag = node_->sim_.dice().between(nanoseconds{0}, milliseconds{2});
    const World::Time when = std::max(node_->clock_.when(std::max(at, now())), world.now()) + lag;
    node_->post(when - world.now(), this, [this, at] {
      if (armed_ != at) return;
      armed_ = LocalTime::max();
      on_alarm_();
    });
  }

  void call(Lane, std::shared_ptr<StoreCall> call) override {
    if (!node_) return;
    node_->post(nanoseconds{0}, this,
                [this, call = std::move(call)] { node_->carry_call(call, this); });
  }

  void callback(std::function<void()> task) override {
    if (!node_) return;
    Dice& dice = node_->sim_.dice();
    const Weather& weather = node_->sim_.weather();
    const bool slow = dice.chance(weather.slow_callbacks);
    const nanoseconds longest = slow ? weather.slowest_callback : milliseconds{1};
    node_->post(dice.between(nanoseconds{0}, longest), this, std::move(task));
  }

  void revoke(std::function<void()> task) override {
    if (!node_) return;
    auto request = std::make_shared<std::function<void()>>(std::move(task));
    requests_.push_back(request);
    node_->post(node_->sim_.dice().between(nanoseconds{0}, milliseconds{5}), this,
                [this, request = std::move(request)] {
                  std::erase(requests_, request);
                  (*request)();
                });
  }

  void shut_down() override {
    while (node_ && !requests_.empty()) {
      const auto request = std::move(requests_.front());
      requests_.pop_front();
      (*request)();
    }
    is_shut_down_ = true;
  }
  bool goes_on_by_itself() const noexcept override { return false; }

 private:
  SimNode* node_;  // null when it has died
  std::function<void()> on_alarm_;
  LocalTime armed_ = LocalTime::max();
  bool is_shut_down_ = false;
  // Of revoke(), and not run yet: the end of a client brings them forward.
  std::deque<std::shared_ptr<std::function<void()>>> requests_;
};

// An executor lives until the end of its life; a client that closed it before wants nothing more.
template <typename Body>
void SimNode::run_task(std::uint64_t life, const SimExecutor* owner, Body& body) {
  if (life != life_ || (owner && owner->is_shut_down())) return;
  if (is_paused_) {
    held_.push_back({owner, std::move(body)});
  } else {
    ++steps_;
    body();
  }
}

SimNode::SimNode(SimWorld& sim, std::string name, SimClock clock)
    : sim_(sim), world_(sim.world()), name_(std::move(name)), clock_(clock) {}

SimNode::~SimNode() { end_life(); }

void SimNode::run(Program program) {
  program_ = std::move(program);
  boot();
}

void SimNode::boot() {
  if (is_up_) return;
  sim_.tell(name_, " boots");
  is_up_ = true;
  running_since_ = world_.now();
  ++steps_;
  if (!program_) return;
  const std::uint64_t life = life_;
  std::shared_ptr<void> memory = program_(*this);
  if (life == life_) {
    memory_ = std::move(memory);
  } else {
    leave_behind(std::move(memory));  // it crashed while it booted
  }
}

void SimNode::crash() {
  if (!is_up_) return;
  ++sim_.counts_.crashes;
  sim_.tell(name_, " crashes");
  if (sim_.on_crash_) sim_.on_crash_(*this);
  end_life();
}

void SimNode::end_life() {
  ++life_;
  ++steps_;
  is_up_ = is_paused_ = false;
  for (const auto& executor : executors_) executor->die();
  executors_.clear();
  held_.clear();
  leave_behind(std::exchange(memory_, nullptr));
}

void SimNode::pause() {
  if (!is_up_ || std::exchange(is_paused_, true)) return;
  ++sim_.counts_.pauses;
  sim_.tell(name_, " is paused");
}

void SimNode::resume() {
  if (!std::exchange(is_paused_, false)) return;
  sim_.tell(name_, " runs again");
  running_since_ = world_.now();
  for (Held& held : std::exchange(held_, {})) {
    post(nanoseconds{0}, held.owner, std::move(held.task));
  }
}

void SimNode::cut_off() {
  if (std::exchange(is_cut_, true)) return;
  ++sim_.counts_.cuts;
  sim_.tell(name_, " is cut off");
}

void SimNode::reconnect() {
  if (std::exchange(is_cut_, false)) sim_.tell(name_, " is connected again");
}

Client SimNode::client(ClientOptions options) {
  options.executor = make_executor();
  if (sim_.options().records_timeline) {
    options.on_event = [this, life = life_, theirs = std::move(options.on_event)](const Event& it) {
      if (life == life_) tell(it);
      if (theirs) theirs(it);
    };
  }
  return Client(connect(), std::move(options));
}

std::shared_ptr<Store> SimNode::connect() {
  opened_ = sim_.server_->replacements();
  auto model = connect_model(
      sim_.server_,
      [this, life = life_](const std::function<void()>& hint) {
        if (life == life_) carry_hint(hint);
      },
      [this] { return opened_ != sim_.server_->replacements(); });
  // Other calls are made while this one is under way, and one thread makes one.
  return with_own_calls(
      std::move(model), [own_thread = own_thread_] { return std::exchange(*own_thread, false); },
      [this](const std::shared_ptr<OwnCall>& call) { return wait_for(call); });
}

Answers SimNode::wait_for(const std::shared_ptr<OwnCall>& call) {
  const std::uint64_t life = life_;
  carry_call(call, nullptr);
  while (!call->is_over() && life == life_ && sim_.go_on()) {
  }
  ++steps_;  // what it does with the answer
  if (call->has_failed() && life == life_) reopen();
  return call->take_answers();
}

// Not before the first answer that says so has come: until then every call is answered the same.
void SimNode::reopen() {
  if (opened_ == sim_.server_->replacements()) return;
  opened_ = sim_.server_->replacements();
  ++reopenings_;
}

bool SimNode::last_until(const std::function<bool()>& is_over) {
  const std::uint64_t life = life_;
  while (is_paused_ || !is_over()) {
    if (!sim_.go_on() || life != life_) return false;
  }
  ++steps_;  // what it does next
  return true;
}

std::shared_ptr<Executor> SimNode::make_executor() {
  return executors_.emplace_back(std::make_shared<SimExecutor>(*this));
}

void SimNode::tell(const Event& event) const {
  const auto say = [&](std::string_view what, std::string_view why) {
    sim_.tell(name_, what, event.mutex, ", token ", std::to_string(event.token), why);
  };
  switch (event.kind) {
    case Event::Kind::kAcquired:
      return say(" acquires ", "");
    case Event::Kind::kReleased:
      return say(" releases ", "");
    case Event::Kind::kRevoked:
      return say(" loses ", std::string(": ") + to_string(event.reason));
    case Event::Kind::kRenewalFailed:
      return say(" could not renew ", event.error ? std::string(": ") + event.error->what() : "");
    case Event::Kind::kRenewed:
    case Event::Kind::kCalled:
      return;
  }
}

void SimNode::post(nanoseconds delay, Task task) { post(delay, nullptr, std::move(task)); }

nanoseconds SimNode::one_way() {
  const Weather& weather = sim_.weather();
  const bool slow = sim_.dice().chance(weather.slow);
  return sim_.dice().between(weather.latency_from, slow ? weather.slowest : weather.latency_to);
}

// A call in true time: it leaves, it may arrive, it may be answered, it may arrive again. An answer
// nobody waits for any more has changed the server all the same.
void SimNode::carry_call(const std::shared_ptr<StoreCall>& call, const SimExecutor* owner) {
  Dice& dice = sim_.dice();
  const Weather& weather = sim_.weather();
  ++sim_.counts_.calls;
  call->send();
  const World::Time deadline = std::max(clock_.when(call->deadline()), world_.now());
  const World::Time arrival = world_.now() + one_way();
  const bool hangs = dice.chance(weather.hanging);
  const World::Time patience = hangs ? deadline + weather.slowest : deadline;
  const bool arrives = !is_cut_ && !dice.chance(weather.lost_requests);
  if (!arrives || arrival > patience) time_out(call, owner, patience);
  if (!arrives) return;
  world_.at(arrival, [this, call = call, owner, patience, life = life_]() mutable {
    const bool performed = sim_.is_server_up();
    const bool is_replaced = opened_ != sim_.server_->replacements();
    if (performed) call->perform();
    if (life != life_ || world_.now() > patience) return;
    if (!is_paused_ && sim_.dice().chance(sim_.weather().stopped)) {
      pause();
      world_.after(sim_.dice().between(nanoseconds{0}, sim_.weather().longest_stop),
                   [this] { resume(); });
    }
    const World::Time reply = world_.now() + one_way();
    const bool answers = performed && !is_cut_ && !sim_.dice().chance(sim_.weather().lost_replies);
    if (answers && reply <= patience) {
      post(reply - world_.now(), owner, [this, is_replaced, owner, call = std::move(call)] {
        call->complete();
        if (is_replaced && owner) reopen();  // a thread of its own has yet to hear of it
      });
    } else {
      time_out(std::move(call), owner, patience);
    }
  });
  if (dice.chance(weather.doubled)) {
    world_.at(arrival + dice.between(nanoseconds{0}, weather.slowest), [this, call] {
      sim_.is_copy_ = true;
      if (sim_.is_server_up()) call->perform();
      sim_.is_copy_ = false;
    });
  }
}

void SimNode::time_out(std::shared_ptr<StoreCall> call, const SimExecutor* owner,
                       World::Time patience) {
  post(std::max(patience - world_.now(), nanoseconds{0}), owner, [call = std::move(call)] {
    call->lose();
    call->complete();
  });
}

void SimNode::carry_hint(const std::function<void()>& hint) {
  Dice& dice = sim_.dice();
  if (is_cut_ || dice.chance(sim_.weather().lost_hints)) return;
  post(one_way(), nullptr, hint);
  if (dice.chance(sim_.weather().forged_hints)) {
    post(dice.between(nanoseconds{0}, milliseconds{2000}), nullptr, hint);
  }
}

}  // namespace simba::testing
