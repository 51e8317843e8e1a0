#include <map>
#include <thread>

#include "simba/locker.h"
#include "testing/contract_engine.h"

// From one owner to the next: by release, death, eviction, or not at all.
namespace simba::testing {

void link_succession_cases() {}

namespace {

SIMBA_CASE(EngineContract, OnReleasedOfTheOldOwnerPrecedesOnAcquiredOfTheNext) {
  Node first = node(name(), long_lease()), second = node(name(), long_lease());
  first.witness->released = [](const MutexState&) { std::this_thread::sleep_for(300ms); };
  first.service->start();
  ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
  second.service->start();
  ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
  EXPECT_EQ(second.witness->acquisitions(), 0u);
  first.service->stop();
  ASSERT_TRUE(second.witness->waits_for_acquisitions(1)) << "the hand-over never came";
  const Notice released = first.witness->notices(Notice::Kind::kReleased).at(0);
  const Notice acquired = second.witness->notices(Notice::Kind::kAcquired).at(0);
  EXPECT_NE(released.ended, 0u);
  EXPECT_LT(released.ended, acquired.begun);
  EXPECT_GT(second.service->term().token(), released.state.term.token());
  second.service->stop();
}

SIMBA_CASE(EngineContract, ADeadOwnersMutexIsTakenOverAfterItsTransition) {
  const std::string dead = wire_id("dead");
  const Observation held = take(*store, name(), dead, 500ms, 500ms);  // and never heard of again
  Node heir = node(name());
  heir.service->start();
  ASSERT_TRUE(heir.witness->waits_for_acquisitions(1));
  const Observation taken = observe(*store, name());
  EXPECT_EQ(taken.owner.id, heir.service->term().wire_id());
  EXPECT_GT(taken.owner.token, held.owner.token);
  EXPECT_GT(taken.now, held.owner.transition_at) << "entered early";
  if (taken.owner.acquired_at && !queues()) {  // in a queue it may be the time it was joined
    EXPECT_GT(*taken.owner.acquired_at, held.owner.transition_at) << "entered early";
  }
  heir.service->stop();
}

SIMBA_CASE(EngineContract, AnEvictedOwnerLosesAndNobodyEntersEarly) {
  ContendOptions options = calm();
  options.ttl = 4s;  // it is still its own when it is evicted
  options.renew_at = 0.1;
  Node first = node(name(), options);
  first.witness->acquired = until_lost();
  first.service->start();
  ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
  const Term term = first.service->term();
  Node second = node(name());
  second.service->start();
  ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
  Client operators = client();
  const Observation evicted =
      operators.evict(name(), term.wire_id(), term.token(), Eviction::kKeepLease);
  EXPECT_EQ(evicted.owner.id, "");
  ASSERT_TRUE(first.witness->waits_for_releases(1)) << "the evicted owner goes on";
  EXPECT_TRUE(term.lost().stop_requested());
  EXPECT_FALSE(term.is_owner());
  EXPECT_EQ(term.loss().reason, LossReason::kForced);
  first.service->stop();
  ASSERT_TRUE(second.witness->waits_for_acquisitions(1));
  const Observation taken = observe(*store, name());
  EXPECT_GT(taken.owner.token, term.token());
  EXPECT_GT(taken.now, evicted.owner.transition_at) << "entered early";
  if (taken.owner.acquired_at && !queues()) {
    EXPECT_GT(*taken.owner.acquired_at, evicted.owner.transition_at) << "entered early";
  }
  second.service->stop();
}

SIMBA_CASE(EngineContract, AnOwnerWhoseMutexWasFreedLearnsThatItLost) {
  SimbaLocker owner(client(), name(), long_lease());  // does not renew by itself for a while
  owner.lock();
  const Term term = owner.term();
  const std::string stranger = wire_id("stranger");
  client().evict(name(), term.wire_id(), term.token(), Eviction::kFreeNow);
  ASSERT_TRUE(owns(take_when_free(*store, name(), stranger), stranger));
  EXPECT_FALSE(owner.renew());
  EXPECT_EQ(term.loss().reason, LossReason::kSuperseded);
  EXPECT_EQ(term.loss().superseded_by, stranger);
  EXPECT_TRUE(owns(observe(*store, name()), stranger)) << "the loser took it away again";
  owner.unlock();
  EXPECT_TRUE(owns(observe(*store, name()), stranger)) << "the loser released another's term";
}

SIMBA_CASE(EngineContract, TwoContendersWithOneLabelAreTwo) {
  Node first = node(name(), long_lease(), "same"), second = node(name(), long_lease(), "same");
  first.service->start();
  ASSERT_TRUE(first.witness->waits_for_acquisitions(1));
  second.service->start();
  ASSERT_TRUE(eventually([&] { return second.service->status() == Status::kRunning; }));
  EXPECT_FALSE(second.service->is_owner());
  second.service->stop();
  EXPECT_TRUE(first.service->is_owner());
  EXPECT_TRUE(owns(observe(*store, name()), first.service->term().wire_id()))
      << "released by its namesake";
  second.service->start();
  first.service->stop();
  ASSERT_TRUE(second.witness->waits_for_acquisitions(1));
  EXPECT_EQ(first.witness->acquisitions(), 1u);
  second.service->stop();
}

SIMBA_CASE(EngineContract, TwoContendersOfOneProcessTakeTurns) {
  Node n = node(name(), long_lease());
  const auto witness = std::make_shared<Witness>(name(), recorder, "d");
  MutexContendService other(*n.client, witness, long_lease());
  n.service->start();
  other.start();
  const auto owners = [&] { return (n.service->is_owner() ? 1 : 0) + (other.is_owner() ? 1 : 0); };
  ASSERT_TRUE(eventually([&] { return owners() == 1; }));
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(owners(), 1);
    std::this_thread::sleep_for(10ms);
  }
  const bool first_owns = n.service->is_owner();
  (first_owns ? *n.service : other).stop();
  EXPECT_TRUE((first_owns ? *witness : *n.witness).waits_for_acquisitions(1));
  (first_owns ? other : *n.service).stop();
  expect_left_free(name());
}

SIMBA_CASE(EngineContract, AWaiterThatGaveUpLeavesNothingBehind) {
  const std::string holder = wire_id("holder");
  take(*store, name(), holder);
  {
    Node waiter = node(name(), long_lease());
    waiter.service->start();
    ASSERT_TRUE(eventually([&] { return waiter.service->status() == Status::kRunning; }));
    waiter.service->stop();
    EXPECT_EQ(waiter.witness->acquisitions(), 0u);
  }
  EXPECT_TRUE(owns(observe(*store, name()), holder));
  release(*store, name(), holder);
  expect_left_free(name());
}

// Its ttl is over when the answer comes, though the store still waits for it to renew.
SIMBA_CASE(EngineContract, ATermThatIsOverOnArrivalIsGivenBackAndNotAdopted) {
  ContendOptions options = calm();
  options.renew_at = 0.05;
  options.call_deadline = 1300ms;  // twice this is longer than the ttl: the answer is waited for
  Node n = node(name(), options);
  std::mutex guard;
  std::map<std::string, int> takes;
  std::string late;
  n.store->before_answers = [&](std::span<const Claim> claims) {
    {
      const std::lock_guard lock(guard);
      if (claims[0].renews()) return;
      ++takes[std::string(claims[0].wire_id)];
      if (!late.empty()) return;
      late = claims[0].wire_id;
    }
    std::this_thread::sleep_for(options.ttl + 200ms);
  };
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  {
    const std::lock_guard lock(guard);
    const bool asked_again =
        takes[late] > 1;  // the machine was so slow that it was asked again in time
    const auto acquired = n.witness->notices(Notice::Kind::kAcquired);
    if (!asked_again) {
      EXPECT_NE(acquired.at(0).state.self, late) << "a late acquisition was adopted";
    }
  }
  n.service->stop();
  expect_left_free(name());
}

}  // namespace
}  // namespace simba::testing
