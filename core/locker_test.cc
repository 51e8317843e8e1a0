// The lock: taking, waiting, giving back.
#include "simba/locker.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/locker_fixture.h"

namespace simba {
namespace {

static_assert(!std::is_copy_constructible_v<SimbaLocker>);
static_assert(std::is_nothrow_move_constructible_v<SimbaLocker>);
static_assert(std::is_nothrow_move_assignable_v<SimbaLocker>);
static_assert(noexcept(std::declval<SimbaLocker&>().unlock()));

TEST_F(LockerTest, LocksAndUnlocks) {
  SimbaLocker locker(client, "m");
  EXPECT_EQ(locker.mutex(), "m");
  EXPECT_FALSE(locker.is_owner());
  EXPECT_EQ(locker.token(), 0u);
  locker.lock();
  EXPECT_TRUE(locker.is_owner());
  EXPECT_TRUE(locker.is_in_ttl());
  EXPECT_EQ(row().owner.id, locker.term().wire_id());
  EXPECT_EQ(row().owner.token, locker.token());
  EXPECT_FALSE(locker.lost().stop_requested());
  const std::stop_token lost = locker.lost();
  locker.unlock();
  EXPECT_FALSE(locker.is_owner());
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, AFreeMutexCostsOneCallToLockAndOneToUnlockOnTheCallersThread) {
  struct Attentive : FaultyStore {
    using FaultyStore::FaultyStore;
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> by_others{0};
    void look() {
      if (std::this_thread::get_id() != caller) ++by_others;
    }
    Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
      look();
      return FaultyStore::contend(claims, deadline);
    }
    Answers release(std::span<const Claim> claims, LocalTime deadline) override {
      look();
      return FaultyStore::release(claims, deadline);
    }
  };
  const auto attentive = std::make_shared<Attentive>(rows);
  SimbaLocker locker(Client(attentive, with(long_lease())), "m");
  locker.lock();
  EXPECT_EQ(attentive->calls(), 1u);
  locker.unlock();
  EXPECT_EQ(attentive->calls(), 2u);
  EXPECT_EQ(attentive->takes(), 1u);
  EXPECT_EQ(attentive->releases(), 1u);
  EXPECT_EQ(attentive->by_others, 0);
}

TEST_F(LockerTest, WorksWithTheLocksOfTheStandardLibrary) {
  SimbaLocker locker(client, "m");
  {
    const std::lock_guard lock(locker);
    EXPECT_TRUE(locker.is_owner());
  }
  {
    const std::unique_lock lock(locker, 60s);
    EXPECT_TRUE(lock.owns_lock());
  }
  {
    const std::unique_lock lock(locker, std::try_to_lock);
    EXPECT_TRUE(lock.owns_lock());
  }
  {
    const std::unique_lock lock(locker, std::chrono::steady_clock::now() + 60s);
    EXPECT_TRUE(lock.owns_lock());
  }
  {
    const std::unique_lock lock(locker, std::chrono::system_clock::now() + 60s);
    EXPECT_TRUE(lock.owns_lock());
  }
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, AScopedLockOfTwoTakesBothInAnyOrder) {
  std::atomic<int> inside{0}, worst{0};
  const auto work = [&](const char* one, const char* other) {
    SimbaLocker first(client, one), second(client, other);
    for (int round = 0; round < 5; ++round) {
      const std::scoped_lock both(first, second);
      worst = std::max(worst.load(), ++inside);
      EXPECT_TRUE(first.is_owner() && second.is_owner());
      --inside;
    }
  };
  std::thread other([&] { work("b", "a"); });
  work("a", "b");
  other.join();
  EXPECT_EQ(worst, 1);
}

TEST_F(LockerTest, ATryOnAHeldMutexFailsAtOnce) {
  take("holder");
  SimbaLocker locker(client, "m");
  EXPECT_FALSE(locker.try_lock());
  std::error_code error;
  EXPECT_FALSE(locker.try_lock(error));
  EXPECT_FALSE(error) << "busy is a value: " << error.message();
  EXPECT_FALSE(locker.try_lock_for(0ms));
  EXPECT_FALSE(locker.try_lock_for(-5s));
  EXPECT_FALSE(locker.try_lock_until(std::chrono::steady_clock::now() - 1h));
  EXPECT_FALSE(locker.is_owner());
  release("holder");
  EXPECT_TRUE(is_left_free());
}

TEST_F(LockerTest, ATimedOutLockStopsContendingAndIsUsableAgain) {
  take("holder");
  SimbaLocker locker(client, "m");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(locker.try_lock_for(150ms));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 150ms);
  release("holder");
  EXPECT_TRUE(is_left_free()) << "it went on contending";
  EXPECT_TRUE(locker.try_lock());
  locker.unlock();
}

TEST_F(LockerTest, AWaiterIsWokenByAnUnlock) {
  SimbaLocker holder(client, "m"), waiter(client, "m");
  holder.lock();
  std::thread unlocker([&] {
    std::this_thread::sleep_for(50ms);
    holder.unlock();
  });
  EXPECT_TRUE(waiter.try_lock_for(20s));
  unlocker.join();
  EXPECT_TRUE(waiter.is_owner());
  EXPECT_FALSE(holder.is_owner());
  waiter.unlock();
}

TEST_F(LockerTest, AVeryLongPatienceIsNotAnOverflow) {
  SimbaLocker locker(client, "m");
  EXPECT_TRUE(locker.try_lock_for(std::chrono::nanoseconds::max()));
  locker.unlock();
  EXPECT_TRUE(locker.try_lock_until(std::chrono::steady_clock::time_point::max()));
  locker.unlock();
}

TEST_F(LockerTest, AStopTokenEndsTheWait) {
  take("holder");
  SimbaLocker locker(client, "m");
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  EXPECT_FALSE(locker.lock(stop.get_token()));
  stopper.join();
  EXPECT_FALSE(locker.lock(stop.get_token())) << "requested before";
  release("holder");
  EXPECT_TRUE(is_left_free());
  std::stop_source calm;
  EXPECT_TRUE(locker.lock(calm.get_token()));
  calm.request_stop();
  EXPECT_TRUE(locker.is_owner()) << "a stop after the lock means nothing";
  locker.unlock();
}

TEST_F(LockerTest, AStopThatWasRequestedBeforeLocksNothing) {
  SimbaLocker locker(client, "m");
  std::stop_source stop;
  stop.request_stop();
  store->forget();
  ASSERT_FALSE(locker.lock(stop.get_token()));
  std::error_code error;
  ASSERT_FALSE(locker.lock(stop.get_token(), error));
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(store->calls(), 0u) << "the store is not even asked";
  EXPECT_FALSE(locker.is_owner());
  EXPECT_TRUE(is_left_free());
}

TEST_F(LockerTest, LockingTwiceIsAnErrorThatSaysSo) {
  SimbaLocker locker(client, "m");
  locker.lock();
  EXPECT_NE(misuse_of([&] { locker.lock(); }).find("not reentrant"), std::string::npos);
  EXPECT_NE(misuse_of([&] { locker.try_lock(); }).find("'m'"), std::string::npos);
  std::error_code error;
  EXPECT_FALSE(locker.lock(error));
  EXPECT_EQ(error, Errc::kMisuse);
  EXPECT_FALSE(locker.try_lock(error));
  EXPECT_EQ(error, Errc::kMisuse);
  EXPECT_TRUE(locker.is_owner()) << "the misuse did no harm";
  std::thread([&] { misuse_of([&] { locker.lock(); }); }).join();
  locker.unlock();
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, ASecondThreadThatLocksDuringAWaitIsTold) {
  take("holder");
  SimbaLocker locker(client, "m");
  std::thread waiting([&] { EXPECT_TRUE(locker.try_lock_for(20s)); });
  EXPECT_TRUE(eventually([&] { return store->takes() > 0; }));
  EXPECT_NE(misuse_of([&] { locker.lock(); }).find("being locked"), std::string::npos);
  release("holder");
  waiting.join();
  EXPECT_TRUE(locker.is_owner());
  locker.unlock();
}

TEST_F(LockerTest, UnlockingWhatIsNotLockedDoesNothing) {
  take("holder");
  SimbaLocker locker(client, "m");
  locker.unlock();
  EXPECT_EQ(row().owner.id, "holder");
  release("holder");
  locker.lock();
  locker.unlock();
  locker.unlock();
  EXPECT_TRUE(locker.try_lock());
  locker.unlock();
}

TEST_F(LockerTest, AnotherThreadMayUnlock) {
  SimbaLocker locker(client, "m");
  locker.lock();
  std::thread([&] { locker.unlock(); }).join();
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, TheDestructorUnlocks) {
  {
    SimbaLocker locker(client, "m");
    locker.lock();
  }
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, ALockerKeepsItsClientAlive) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  SimbaLocker locker(*own, "m");
  own.reset();
  locker.lock();
  EXPECT_TRUE(locker.is_owner());
  locker.unlock();
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, AMovedLockerTakesTheLockWithIt) {
  SimbaLocker first(client, "m");
  first.lock();
  const Token token = first.token();
  SimbaLocker second(std::move(first));
  EXPECT_TRUE(second.is_owner());
  EXPECT_EQ(second.token(), token);
  SimbaLocker third(client, "other");
  third.lock();
  third = std::move(second);
  EXPECT_TRUE(client.observe("other").is_free()) << "what it held before is released";
  EXPECT_EQ(third.mutex(), "m");
  EXPECT_TRUE(third.is_owner());
  third.unlock();
  EXPECT_TRUE(is_free());
  first = SimbaLocker(client, "m");  // a moved-from one can be given a new life
  first.lock();
  first.unlock();
}

TEST_F(LockerTest, BadNamesAndOptionsDieInTheConstructor) {
  const auto refused = [&](const std::function<void()>& make) {
    try {
      make();
      return false;
    } catch (const Error& error) {
      return error.errc() == Errc::kMisconfigured;
    }
  };
  EXPECT_TRUE(refused([&] { SimbaLocker(client, ""); }));
  EXPECT_TRUE(refused([&] { SimbaLocker(client, "a\nb"); }));
  EXPECT_TRUE(refused([&] { SimbaLocker(client, std::string(1000, 'm')); }));
  EXPECT_TRUE(refused([&] { SimbaLocker(client, "m", long_lease(), std::string(1000, 'l')); }));
  ContendOptions short_lease = long_lease();
  short_lease.ttl = 50ms;
  short_lease.transition = 0ms;
  EXPECT_TRUE(refused([&] { SimbaLocker(client, "m", short_lease); }));
}

TEST_F(LockerTest, ManyLockersOfManyClientsTakeTurns) {
  int unprotected = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Client own(store, with(long_lease()));
      SimbaLocker locker(own, "m");
      for (int round = 0; round < 50; ++round) {
        const std::lock_guard lock(locker);
        ++unprotected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unprotected, 200);
}

TEST_F(LockerTest, TheInitialDelayOfServicesHoldsUpNoLock) {
  ContendOptions options = long_lease();
  options.initial_delay = 1h;
  SimbaLocker locker(client, "m", options);
  EXPECT_TRUE(locker.try_lock());
}

}  // namespace
}  // namespace simba
