#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/contention.h"
#include "simba/contender_id.h"
#include "testing/fake_executor.h"

namespace simba::core {

using namespace std::chrono_literals;
using Phase = Contention::Phase;

inline constexpr milliseconds kStoreAhead{7'000'000};

inline ContendOptions calm() {
  ContendOptions options;
  options.jitter = {0ms, 0ms};
  return options;
}

// One contender, and the store's answers by hand.
class ContentionTest : public ::testing::Test {
 protected:
  enum class Queue { kNo, kYes };

  ContentionTest() { configure(calm()); }
  void configure(const ContendOptions& options, Queue queue = Queue::kNo,
                 std::string label = "me") {
    machine.emplace(std::move(label), std::make_shared<Rules>(options, now), queue == Queue::kYes,
                    executor);
  }

  // Every event goes through here, so that its ask is not overlooked.
  Effects see(Effects effects) {
    if (effects.ask) {
      EXPECT_FALSE(under_way) << "two calls at once";
      ask = *effects.ask;
      sent = now;
      under_way = true;
    }
    return effects;
  }
  Effects start(Goal goal = Goal::kKeep) { return see(machine->start(goal, now)); }
  Effects stop() { return see(machine->stop(now)); }
  Effects give_up() { return see(machine->give_up(now)); }
  Effects wake() { return see(machine->wake(now)); }
  Effects work_done() { return see(machine->work_done(machine->wire_id(), now)); }
  Effects answer(const Observation& seen) {
    under_way = false;
    return see(machine->answered(ask.number, seen, sent, now));
  }
  Effects fail(Errc code = Errc::kUnreachable) {
    under_way = false;
    return see(machine->failed(ask.number, code, now));
  }
  // The next thing that happens by itself.
  Effects let_timer_come() {
    const LocalTime at = machine->next_timer();
    EXPECT_NE(at, LocalTime::max()) << "nothing would ever happen again";
    if (at == LocalTime::max()) return {};
    now = std::max(now, at);
    return see(machine->timer(now));
  }
  // The call hangs in the driver until nobody waits for it any more.
  Effects let_call_hang() {
    under_way = false;
    return let_timer_come();
  }

  StoreTime store_now() const {
    return StoreTime{std::chrono::floor<milliseconds>(now.time_since_epoch()) + kStoreAhead};
  }
  Observation owned_by(std::string id, Token token = 7, milliseconds ttl = 10s,
                       milliseconds lease = 16s) const {
    const StoreTime at = store_now();
    return {{std::move(id), at, at + ttl, at + lease, token}, at};
  }
  Observation mine(Token token = 7) const { return owned_by(machine->wire_id(), token); }
  Observation nobodys() const { return {MutexOwner::none(), store_now()}; }

  Effects hold(Goal goal = Goal::kKeep) {
    start(goal);
    return answer(mine());
  }
  // In kTrying, with somebody else's lease known.
  void wait_for_other() {
    start();
    answer(owned_by("other~1"));
  }
  void end_term() {
    stop();
    work_done();
  }
  static std::vector<std::string> ids(const Effects& effects) {
    std::vector<std::string> out;
    for (const Retired& retired : effects.retired) out.push_back(retired.wire_id);
    return out;
  }
  using Ids = std::vector<std::string>;

  testing::FakeExecutor executor;
  std::optional<Contention> machine;
  LocalTime now{1h};
  Ask ask;
  LocalTime sent{};
  bool under_way = false;
};

}  // namespace simba::core
