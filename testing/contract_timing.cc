#include <algorithm>
#include <thread>

#include "testing/contract_engine.h"

// How soon the next owner enters. The bounds are wide, since machines are busy; but the leases here
// last much longer than the bounds, so that only what the case is about can have done it.
namespace simba::testing {

void link_timing_cases() {}

namespace {

class TimingContract : public EngineContract {
 protected:
  void note(const char* what, LocalTime since) {
    const auto took = std::chrono::duration_cast<milliseconds>(BootClock::now() - since);
    RecordProperty(what, static_cast<int>(took.count()));
  }
};

SIMBA_CASE(TimingContract, AReleaseHandsOverByAHintAlone) {
  ContendOptions options = long_lease();
  options.safety_poll = 0ms;
  Node first = node(name(), options), second = node(name(), options);
  if (!can_push(*first.store) || !can_push(*store)) GTEST_SKIP() << "this store cannot push";
  first.service->start();
  ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
  second.service->start();
  ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
  std::this_thread::sleep_for(200ms);  // it waits in earnest
  const LocalTime began = BootClock::now();
  first.service->stop();
  EXPECT_TRUE(second.witness->waits_for_acquisitions(1)) << "the hint never came";
  note("handover_ms", began);
  second.service->stop();
}

SIMBA_CASE(TimingContract, AReleaseHandsOverWithinASafetyPollWhenTheHintIsLost) {
  ContendOptions options = long_lease();
  options.safety_poll = 200ms;
  Node first = node(name(), options), second = node(name(), options);
  second.store->drop_hints();
  first.service->start();
  ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
  second.service->start();
  ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
  const LocalTime began = BootClock::now();
  first.service->stop();
  EXPECT_TRUE(second.witness->waits_for_acquisitions(1));
  note("handover_without_hint_ms", began);
  second.service->stop();
}

SIMBA_CASE(TimingContract, TheDefaultsHandOverWithinTheirSafetyPoll) {
  ContendOptions options;
  options.ttl = kLongTtl;
  options.transition = kLongTransition;
  const bool pushes = can_push(*store);
  // A second without push; five with, should the hint be lost.
  const nanoseconds bound = pushes ? 15s : 4500ms;
  nanoseconds least = nanoseconds::max();
  for (int round = 0; round < 5 && least >= bound; ++round) {  // a busy machine is late by chance
    Node first = node(name(), options), second = node(name(), options);
    if (!pushes) second.store->cannot_push();
    first.service->start();
    ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
    second.service->start();
    ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
    const LocalTime began = BootClock::now();
    first.service->stop();
    ASSERT_TRUE(second.witness->waits_for_acquisitions(1));
    least = std::min<nanoseconds>(least, BootClock::now() - began);
    note("default_handover_ms", began);
    second.service->stop();
  }
  EXPECT_LT(least, bound);
}

SIMBA_CASE(TimingContract, AKilledOwnersMutexIsTakenOverAfterItsLeaseAndNotBefore) {
  ContendOptions options = calm();
  options.ttl = 4s;  // it is still its own when it is killed
  options.transition = 1s;
  options.renew_at = 0.1;
  Node killed = node(name(), options), heir = node(name(), options);
  killed.service->start();
  ASSERT_TRUE(killed.witness->waits_for_acquisitions(1));
  heir.service->start();
  ASSERT_TRUE(eventually([&] { return heir.service->status() == Status::kRunning; }));
  killed.store->go_down();  // nothing of it reaches the store any more
  const Observation last = observe(*store, name());
  const LocalTime began = BootClock::now();
  ASSERT_TRUE(heir.witness->waits_for_acquisitions(1));
  note("takeover_ms", began);
  const Observation taken = observe(*store, name());
  EXPECT_GT(taken.owner.token, last.owner.token);
  EXPECT_GT(taken.now, last.owner.transition_at) << "entered early";
  heir.service->stop();
  killed.service->stop();
}

SIMBA_CASE(TimingContract, EveryWaiterGetsItsTurn) {
  ContendOptions options = long_lease();
  options.safety_poll = 200ms;
  std::vector<Node> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(node(name(), options));
  for (Node& n : nodes) n.service->start();
  for (std::size_t turn = 0; turn < nodes.size(); ++turn) {
    Node* owner = nullptr;
    ASSERT_TRUE(eventually([&] {
      for (Node& n : nodes) {
        if (n.service->is_owner() && n.witness->acquisitions() == 1) owner = &n;
      }
      return owner != nullptr;
    })) << "turn "
        << turn;
    owner->service->stop();
  }
  for (const Node& n : nodes) EXPECT_EQ(n.witness->acquisitions(), 1u);
  expect_left_free(name());
}

}  // namespace
}  // namespace simba::testing
