#include "simba/lock_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/api_fixture.h"

// The locks of a manager with real threads and the real clock.
namespace simba {
namespace {

using ::testing::HasSubstr;
using Lock = LockManager::Lock;

static_assert(!std::is_copy_constructible_v<Lock>);
static_assert(std::is_nothrow_move_constructible_v<Lock>);
static_assert(noexcept(std::declval<Lock&>().unlock()));

// Whether a thread of this process sleeps, and is not merely held up for a moment.
bool rests(pid_t thread) {
  const auto look = [&] {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
    std::string state, switches;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("State:")) state = line;
      if (line.starts_with("voluntary_ctxt_switches:")) switches = line;
    }
    return state.find("sleeping") == state.npos ? std::string() : switches;
  };
  const std::string before = look();
  std::this_thread::sleep_for(30ms);
  return !before.empty() && look() == before;
}

class LockManagerTest : public ApiTest {
 protected:
  Client client{store};
  LockManager manager = LockManager::of(client, slow());

  // Leases that outlast every case: what happens soon has another reason.
  static TemporalAlignmentStrategy slow() {
    TemporalAlignmentStrategy strategy;
    strategy.lock_ttl = 60s;
    strategy.max_jitter = 20ms;
    return strategy;
  }
  bool is_free(std::string_view id) { return row(id).is_free(); }
  void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }
};

TEST_F(LockManagerTest, LocksAndUnlocksIdempotently) {
  Lock lock = manager.create_lock("L1", 4s);
  EXPECT_EQ(lock.id(), "L1");
  EXPECT_EQ(lock.ttl(), 4s);
  EXPECT_FALSE(lock.is_owner());
  lock.unlock();
  ASSERT_TRUE(lock.try_lock_for(12s));
  EXPECT_TRUE(lock.is_owner() && lock.is_in_ttl());
  EXPECT_GT(lock.token(), 0u);
  EXPECT_EQ(manager.held(), 1u);
  const std::stop_token lost = lock.lost();
  lock.unlock();
  lock.unlock();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_FALSE(lock.is_owner());
  EXPECT_TRUE(is_free("L1"));
  EXPECT_EQ(manager.held(), 0u);
  {
    const std::unique_lock held(lock, 5s);
    EXPECT_TRUE(held.owns_lock());
  }
  EXPECT_TRUE(is_free("L1"));
}

TEST_F(LockManagerTest, AClientHasOneManager) {
  const Client copy = client;
  LockManager same = LockManager::of(copy);
  const Lock lock = manager.create_lock("L1");
  EXPECT_THAT(misuse_of([&] { same.create_lock("L1"); }), HasSubstr("L1"));
  EXPECT_EQ(same.strategy(), slow());
  EXPECT_THAT(misuse_of([&] { LockManager::of(client, {}); }), HasSubstr("another strategy"));
  const Client other(store);
  LockManager::of(other).create_lock("L1");
}

TEST_F(LockManagerTest, ADriversClientOfTheUserHasOneManager) {
  const int drivers = 0, another = 0;
  const auto on = [](const int& its_client) {
    auto made = std::make_shared<FaultyStore>(make_memory());
    StoreTraits traits = made->traits();
    traits.users_client = &its_client;
    made->set_traits(traits);
    return Client(made);
  };
  const Client first = on(drivers), second = on(drivers), third = on(another);
  {
    const LockManager one = LockManager::of(first);
    EXPECT_THAT(misuse_of([&] { LockManager::of(second); }),
                ::testing::AllOf(HasSubstr("has a lock manager already"), HasSubstr("of its own")));
    LockManager::of(first);
    LockManager::of(third);
  }
  LockManager::of(second);
}

TEST_F(LockManagerTest, ABadStrategyOrNameDiesAtOnce) {
  const Client other(store);
  TemporalAlignmentStrategy bad;
  bad.lock_ttl = 1s;
  EXPECT_THROW(LockManager::of(other, bad), Error);
  EXPECT_THROW(manager.create_lock(" "), Error);
  EXPECT_THROW(manager.create_lock("L1", 20ms), Error);
}

TEST_F(LockManagerTest, ALockThatBringsNoTtlHasThatOfTheStrategy) {
  Lock brings_none = manager.create_lock("L1"), brings_one = manager.create_lock("L2", 30s);
  EXPECT_EQ(brings_none.ttl(), 60s);
  EXPECT_EQ(brings_one.ttl(), 30s);
  const std::scoped_lock both(brings_none, brings_one);
  const auto ttl_of = [](const MutexOwner& owner) {
    return owner.ttl_at.value() - owner.acquired_at.value();
  };
  EXPECT_EQ(ttl_of(row("L1").owner), 60s);
  EXPECT_EQ(ttl_of(row("L2").owner), 30s);
}

TEST_F(LockManagerTest, EachWayToLockHasACodeInsteadOfAnException) {
  Lock lock = manager.create_lock("L1");
  std::error_code error;
  const std::vector<std::function<bool()>> ways{
      [&] { return lock.lock(error); },
      [&] { return lock.lock(std::stop_token{}, error); },
      [&] { return lock.try_lock(error); },
      [&] { return lock.try_lock_for(20s, error); },
      [&] { return lock.try_lock_until(std::chrono::steady_clock::now() + 20s, error); },
  };
  for (const auto& way : ways) {
    store->go_down(Error(Errc::kDenied, "no"));
    EXPECT_FALSE(way());
    EXPECT_EQ(error, Errc::kDenied);
    store->heal();
    EXPECT_TRUE(way());
    EXPECT_FALSE(error) << error.message();
    EXPECT_TRUE(lock.is_owner());
    lock.unlock();
  }
}

TEST_F(LockManagerTest, AThreadThatHoldsItLocksAgainAndOneUnlockGivesItBack) {
  Lock lock = manager.create_lock("L1");
  lock.lock();
  const Token token = lock.token();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.try_lock_for(1s));
  EXPECT_TRUE(lock.lock(std::stop_source().get_token()));
  lock.lock();
  EXPECT_EQ(lock.token(), token);
  EXPECT_EQ(store->takes(), 1u);
  lock.unlock();
  EXPECT_TRUE(is_free("L1"));
}

TEST_F(LockManagerTest, ThePairOfIdAndThreadOwns) {
  Lock lock = manager.create_lock("L1");
  lock.lock();
  on_another_thread([&] {
    EXPECT_FALSE(lock.is_owner());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(50ms));
    lock.unlock();  // nothing of this thread's
  });
  EXPECT_TRUE(lock.is_owner());
  lock.unlock();
  on_another_thread([&] {
    EXPECT_TRUE(lock.try_lock());
    EXPECT_TRUE(lock.is_owner());
    lock.unlock();
  });
}

TEST_F(LockManagerTest, ASecondLockOfOneIdInOneThreadIsAnErrorInsteadOfADeadlock) {
  auto first = std::make_unique<Lock>(manager.create_lock("L1"));
  EXPECT_THAT(misuse_of([&] { manager.create_lock("L1"); }),
              ::testing::AllOf(HasSubstr("'L1'"), HasSubstr("reentrant"), HasSubstr("for ever")));
  manager.create_lock("L2");
  on_another_thread([&] {
    Lock another = manager.create_lock("L1");
    EXPECT_THAT(misuse_of([&] { first->lock(); }), HasSubstr("'L1'"));
  });
  first.reset();
  manager.create_lock("L1").lock();
}

TEST_F(LockManagerTest, AWaitCanBeInterrupted) {
  Lock lock = manager.create_lock("L1");
  lock.lock();
  std::stop_source stop;
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    EXPECT_FALSE(lock.lock(stop.get_token()));
    ended = true;
  });
  EXPECT_TRUE(eventually([&] { return store->watches() > 0; }));
  EXPECT_FALSE(ended);
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(lock.is_owner());
}

TEST_F(LockManagerTest, AStopThatWasRequestedBeforeTakesNothingAndEndsNothing) {
  Lock lock = manager.create_lock("L1");
  std::stop_source stop;
  stop.request_stop();
  ASSERT_FALSE(lock.lock(stop.get_token()));
  EXPECT_EQ(store->calls(), 0u);
  lock.lock();
  const Token token = lock.token();
  std::error_code error;
  EXPECT_FALSE(lock.lock(stop.get_token())) << "nor is it locked again";
  EXPECT_FALSE(lock.lock(stop.get_token(), error));
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(lock.token(), token);
  EXPECT_TRUE(lock.is_owner());
}

TEST_F(LockManagerTest, WaitersOfOneProcessFollowOneAnotherInTheOrderOfTheirArrival) {
  constexpr int kWaiters = 6;
  Lock lock = manager.create_lock("L1");
  lock.lock();
  std::vector<int> order;  // guarded by the lock
  std::array<std::atomic<pid_t>, kWaiters> ids{};
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    std::atomic<pid_t>& id = ids.at(static_cast<std::size_t>(i));
    waiters.emplace_back([&, i] {
      id = ::gettid();
      lock.lock();
      order.push_back(i);
      lock.unlock();
    });
    EXPECT_TRUE(eventually([&] { return id != 0 && rests(id); }));
  }
  lock.unlock();
  for (std::thread& each : waiters) each.join();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(LockManagerTest, TheLocksOfAThreadThatEndsAreGivenBack) {
  Lock shared = manager.create_lock("shared"), left = manager.create_lock("left");
  on_another_thread([&] {
    shared.lock();
    left.lock();
  });
  EXPECT_TRUE(eventually([&] { return is_free("shared") && is_free("left"); }));
  EXPECT_TRUE(shared.try_lock_for(10s));
}

TEST_F(LockManagerTest, ThreadsThatComeAndGoLeaveNothingBehind) {
  Lock lock = manager.create_lock("L1");
  for (int i = 0; i < 300; ++i) {
    on_another_thread([&] { EXPECT_TRUE(lock.try_lock_for(10s)); });
  }
  EXPECT_TRUE(eventually([&] { return manager.held() == 0 && is_free("L1"); }));
}

TEST_F(LockManagerTest, ManyThreadsCountWithoutLosingAnUpdate) {
  constexpr int kThreads = 8, kRounds = 40;
  int counter = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Lock lock = manager.create_lock("counter");
      for (int round = 0; round < kRounds; ++round) {
        lock.lock();
        const int next = counter + 1;
        std::this_thread::yield();
        counter = next;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * kRounds);
}

TEST_F(LockManagerTest, InAForkedChildALockOwnsNothingAndSaysSo) {
  auto lock = std::make_unique<Lock>(manager.create_lock("L1"));
  lock->lock();
  EXPECT_EQ(in_child([&] {
              if (lock->is_owner()) return 1;
              lock->unlock();
              if (misuse_of([&] { lock->lock(); }).find("forked") == std::string::npos) return 2;
              lock.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(lock->is_owner());
  EXPECT_FALSE(is_free("L1"));
}

// No thread runs at the fork: the thread sanitizer would take those of the child for it.
using LockManagerEndTest = ApiTest;

// The child says through a pipe what its store was asked before it died.
TEST_F(LockManagerEndTest, OnTerminateLocksAreGivenBackFirst) {
  for (const bool asks_for_it : {true, false}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const int how = in_child([&] {
      std::signal(SIGABRT, SIG_DFL);
      static int told = ends[1];
      class Teller : public FaultyStore {
       public:
        using FaultyStore::FaultyStore;
        Answers release(std::span<const Claim> claims, LocalTime deadline) override {
          if (::write(told, "r", 1) != 1) ::_exit(9);
          return FaultyStore::release(claims, deadline);
        }
      };
      const Client own(std::make_shared<Teller>(make_memory()));
      LockManager locks = LockManager::of(own);
      if (asks_for_it) {
        LockManager::release_on_terminate();
        LockManager::release_on_terminate();
      }
      ::close(2);  // what terminate prints
      Lock one = locks.create_lock("one"), two = locks.create_lock("two");
      Lock of_others = locks.create_lock("of others");
      of_others.lock();
      std::thread([&] {
        one.lock();
        two.lock();
        throw std::runtime_error("nobody catches this");
      }).join();
      return 0;
    });
    ::close(ends[1]);
    EXPECT_EQ(how, 1000 + SIGABRT);
    char said[8];
    EXPECT_EQ(::read(ends[0], said, sizeof said), asks_for_it ? 2 : 0);
    ::close(ends[0]);
  }
}

}  // namespace
}  // namespace simba
