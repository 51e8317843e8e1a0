#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "simba/executor.h"
#include "simba/time.h"

// Virtual time: nothing happens unless the test says so.
//
//   auto executor = std::make_shared<FakeExecutor>();
//   auto store = make_memory(executor->store_clock());
//   ...
//   executor->advance(16s);   // everything that falls due on the way happens, each at its time
//
// Store calls are made at once and take no time, callbacks return at once: unless they are held,
// and then the test takes each through its steps.
namespace simba::testing {

// A store call that the test performs by hand. A step is done once; complete() does what is
// missing.
class HeldCall {
 public:
  HeldCall(Lane lane, std::shared_ptr<StoreCall> call) : lane_(lane), call_(std::move(call)) {}

  Lane lane() const { return lane_; }
  StoreCall& call() const { return *call_; }
  LocalTime deadline() const { return call_->deadline(); }
  bool is_sent() const { return sent_; }
  bool is_done() const { return done_; }

  void send();
  void perform();                // the store has acted; nobody has heard of it yet
  void lose();                   // whatever the store did or will do, its answer does not come
  void complete();               // the engine hears of it
  void hang() { done_ = true; }  // the driver never returns

 private:
  const Lane lane_;
  const std::shared_ptr<StoreCall> call_;
  bool sent_ = false;
  bool answered_ = false;
  bool done_ = false;
};

// Threads: one. The engine under test has no others.
class FakeExecutor : public Executor {
 public:
  explicit FakeExecutor(std::uint64_t seed = 1);

  // --- for the test ---

  // Moves the clock on, stopping at each alarm on the way. Everything due happens in order: stop
  // requests, the alarm, store calls, callbacks.
  void advance(nanoseconds span);
  // What is due now, without moving the clock. Throws std::logic_error when it does not come to
  // rest.
  void run();
  // The process stood still: the clock moved, and nothing happened meanwhile.
  void jump(nanoseconds span) { now_ += span; }
  // Happens right after the clock is read the next time, as if the reader stood still there.
  void after_next_look(std::function<void()> task) { after_look_ = std::move(task); }

  // From now on store calls wait for the test.
  void hold_calls() { holds_calls_ = true; }
  // Those that are neither done nor given away by the test, oldest first.
  std::vector<std::shared_ptr<HeldCall>> pending_calls();
  // What is held is made now, and nothing is held any more.
  void let_calls_go();

  void hold_callbacks() { holds_callbacks_ = true; }
  std::size_t pending_callbacks() const { return callbacks_.size(); }
  // Runs the oldest one. False: there was none.
  bool run_callback();
  void let_callbacks_go();

  // When the engine wants to be called next; LocalTime::max() for never.
  LocalTime alarm() const { return alarm_; }
  // For make_memory(): the store's clock goes with ours, `ahead` of it.
  std::function<StoreTime()> store_clock(milliseconds ahead = std::chrono::hours{1}) const;
  bool is_shut_down() const { return shut_down_; }
  // How many random numbers were drawn.
  std::uint64_t drawn() const { return drawn_; }

  // --- for the engine ---

  LocalTime now() const noexcept override {
    const LocalTime read = now_;
    if (after_look_) std::exchange(after_look_, nullptr)();
    return read;
  }
  std::uint64_t random() override;
  void start(std::function<void()> on_alarm) override { on_alarm_ = std::move(on_alarm); }
  void set_alarm(LocalTime at) override;
  void call(Lane lane, std::shared_ptr<StoreCall> call) override;
  void callback(std::function<void()> task) override;
  void revoke(std::function<void()> task) override;
  void shut_down() override;
  bool goes_on_by_itself() const noexcept override { return false; }

 private:
  bool step();
  bool make_call();

  LocalTime now_{std::chrono::hours{1}};
  mutable std::function<void()> after_look_;
  std::mt19937_64 random_;
  std::uint64_t drawn_ = 0;
  std::function<void()> on_alarm_;
  LocalTime alarm_ = LocalTime::max();
  std::deque<std::function<void()>> revokes_;
  std::deque<std::shared_ptr<HeldCall>> calls_;
  std::deque<std::function<void()>> callbacks_;
  bool holds_calls_ = false;
  bool holds_callbacks_ = false;
  bool shut_down_ = false;
};

}  // namespace simba::testing
