#include <mutex>
#include <thread>

#include "simba/locker.h"
#include "testing/contract_engine.h"

// The lock for a critical section.
namespace simba::testing {

void link_locker_cases() {}

namespace {

using LockerContract = EngineContract;

SIMBA_CASE(LockerContract, ALockedMutexIsOwnedUntilUnlock) {
  SimbaLocker locker(client(), name(), long_lease());
  Token last = 0;
  for (int round = 0; round < 3; ++round) {
    const std::unique_lock lock(locker);
    const Observation held = observe(*store, name());
    EXPECT_EQ(held.owner.id, locker.term().wire_id());
    EXPECT_EQ(held.owner.token, locker.token());
    EXPECT_TRUE(locker.is_in_ttl());
    EXPECT_GT(locker.token(), last);
    last = locker.token();
  }
  EXPECT_FALSE(locker.is_owner());
  EXPECT_TRUE(observe(*store, name()).is_free());
}

SIMBA_CASE(LockerContract, ATryOnAHeldMutexFailsAndLeavesNothingBehind) {
  SimbaLocker holder(client(), name(), long_lease()), other(client(), name(), long_lease());
  holder.lock();
  EXPECT_FALSE(other.try_lock());
  EXPECT_FALSE(other.try_lock_for(100ms));
  EXPECT_FALSE(other.is_owner());
  EXPECT_TRUE(holder.is_owner());
  holder.unlock();
  expect_left_free(name());
  EXPECT_TRUE(other.try_lock());
  other.unlock();
}

SIMBA_CASE(LockerContract, AWaiterGetsTheMutexWhenItIsUnlocked) {
  SimbaLocker holder(client(), name(), long_lease()), waiter(client(), name(), long_lease());
  holder.lock();
  const Token first = holder.token();
  std::atomic<bool> unlocked{false};
  std::thread waiting([&] {
    recorder.guard([&] {
      waiter.lock();
      recorder.expect(unlocked, "locked before it was unlocked");
      recorder.expect(waiter.token() > first, "a token did not grow");
      waiter.unlock();
    });
  });
  std::this_thread::sleep_for(200ms);
  unlocked = true;
  holder.unlock();
  waiting.join();
  expect_left_free(name());
}

SIMBA_CASE(LockerContract, CriticalSectionsNeverOverlap) {
  constexpr int kThreads = 6, kRounds = 20;
  int unprotected = 0;  // but by the mutex
  std::atomic<int> inside{0};
  Token last = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      recorder.guard([&] {
        SimbaLocker locker(client(), name(), calm());
        for (int round = 0; round < kRounds; ++round) {
          const std::lock_guard lock(locker);
          recorder.expect(inside.fetch_add(1) == 0, "two in the critical section");
          recorder.expect(locker.token() > last, "a token did not grow");
          last = locker.token();
          ++unprotected;
          inside.fetch_sub(1);
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unprotected, kThreads * kRounds);
  expect_left_free(name());
}

SIMBA_CASE(LockerContract, AnEvictedLockerHearsOfItAndItsUnlockHarmsNobody) {
  SimbaLocker locker(client(), name(), calm());
  locker.lock();
  const std::stop_token lost = locker.lost();
  const std::string stranger = wire_id("stranger");
  store->evict(name(), locker.term().wire_id(), locker.token(), Eviction::kFreeNow, soon());
  ASSERT_TRUE(owns(take(*store, name(), stranger), stranger));
  ASSERT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(locker.is_owner());
  locker.unlock();
  EXPECT_TRUE(owns(observe(*store, name()), stranger)) << "unlocked another's mutex";
  EXPECT_FALSE(locker.try_lock());
  release(*store, name(), stranger);
  EXPECT_TRUE(locker.try_lock_for(10s)) << "usable again";
  locker.unlock();
}

SIMBA_CASE(LockerContract, ALockThatIsToldToStopGivesUpAndLeavesNothingBehind) {
  const std::string holder = wire_id("holder");
  take(*store, name(), holder);
  SimbaLocker locker(client(), name(), long_lease());
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  EXPECT_FALSE(locker.lock(stop.get_token()));
  stopper.join();
  release(*store, name(), holder);
  expect_left_free(name());
}

SIMBA_CASE(LockerContract, AnAmbiguousLockIsResolvedAndNotLeftBehind) {
  const auto faulty = connect_faulty();
  SimbaLocker locker(client_on(faulty), name(), long_lease());
  faulty->fail_after(Error(Errc::kTimeout, "lost answer"));
  locker.lock();  // the take got through, its answer did not: asked again under the same id
  EXPECT_TRUE(owns(observe(*store, name()), locker.term().wire_id()));
  faulty->fail_before(Error(Errc::kTimeout, "lost request"));
  locker.unlock();
  expect_left_free(name());
  faulty->fail_after(Error(Errc::kTimeout, "lost answer"));
  if (!locker.try_lock()) expect_left_free(name());
}

SIMBA_CASE(LockerContract, ALockIsRenewedWhileItIsHeld) {
  SimbaLocker locker(client(), name(), steady());
  locker.lock();
  const Token token = locker.token();
  EXPECT_TRUE(are_renewed({{name(), locker.term()}}));
  EXPECT_TRUE(locker.is_owner());
  EXPECT_EQ(observe(*store, name()).owner.token, token);
  locker.unlock();
}

}  // namespace
}  // namespace simba::testing
