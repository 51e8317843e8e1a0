#include "simba/locker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simba/memory.h"
#include "testing/faulty_store.h"

// The lock with real threads and the real clock; what its machine decides is tested in virtual
// time.
namespace simba {
namespace {

using namespace std::chrono_literals;
using testing::FaultyStore;

static_assert(!std::is_copy_constructible_v<SimbaLocker>);
static_assert(std::is_nothrow_move_constructible_v<SimbaLocker>);
static_assert(std::is_nothrow_move_assignable_v<SimbaLocker>);
static_assert(noexcept(std::declval<SimbaLocker&>().unlock()));

bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Leases that outlast every case: what happens soon has another reason.
ContendOptions long_lease() {
  ContendOptions options;
  options.ttl = 60s;
  options.transition = 30s;
  options.jitter = {0ms, 20ms};
  return options;
}

// Its owner hears soon that it was evicted, and never loses it otherwise.
ContendOptions soon_renewed() {
  ContendOptions options = long_lease();
  options.renew_at = 0.005;
  return options;
}

ClientOptions with(const ContendOptions& contend) {
  ClientOptions options;
  options.contend = contend;
  return options;
}

class LockerTest : public ::testing::Test {
 protected:
  const std::shared_ptr<Store> rows = make_memory();  // without faults
  const std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(rows);
  Client client{store, with(long_lease())};

  Observation row() {
    const std::string_view name = "m";
    return std::get<Observation>(rows->observe({&name, 1}, BootClock::now() + 60s).at(0));
  }
  bool is_free() { return row().is_free(); }
  bool is_left_free() {
    return eventually([&] {
      if (!is_free()) return false;
      std::this_thread::sleep_for(50ms);
      return is_free();
    });
  }
  // Somebody else's term, by hand.
  Observation take(const std::string& id) {
    const Claim claim{"m", id, 0, 0, 60s, 30s};
    return std::get<Observation>(rows->contend({&claim, 1}, BootClock::now() + 60s).at(0));
  }
  void release(const std::string& id) {
    const Claim claim{"m", id, 0, 0, 60s, 30s};
    rows->release({&claim, 1}, BootClock::now() + 60s);
  }
};

std::string misuse_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse) << error.what();
    return error.what();
  }
}

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
  SimbaLocker locker(client, "m");
  store->forget();
  locker.lock();
  EXPECT_EQ(store->calls(), 1u);
  locker.unlock();
  EXPECT_EQ(store->calls(), 2u);
  EXPECT_EQ(store->takes(), 1u);
  EXPECT_EQ(store->releases(), 1u);
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
  if (locker.lock(stop.get_token())) {
    locker.unlock();  // a free mutex may be had on the way
  }
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

TEST_F(LockerTest, AnEvictedOwnerHearsOfItAndCanLockAgain) {
  SimbaLocker locker(client, "m", soon_renewed());
  locker.lock();
  const Term term = locker.term();
  std::atomic<bool> told{false};
  const std::stop_callback on_lost(locker.lost(), [&] { told = true; });
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_FALSE(locker.is_owner());
  EXPECT_FALSE(locker.is_in_ttl());
  EXPECT_EQ(term.loss().reason, LossReason::kForced);
  EXPECT_NE(misuse_of([&] { locker.lock(); }), "none") << "it has to be unlocked first";
  locker.unlock();
  EXPECT_TRUE(locker.try_lock_for(20s));
  EXPECT_GT(locker.token(), term.token());
  locker.unlock();
}

TEST_F(LockerTest, AnUnlockAfterTheLossHarmsNobody) {
  SimbaLocker locker(client, "m", soon_renewed());
  locker.lock();
  store->go_down();  // no renewal comes in between
  rows->evict("m", locker.term().wire_id(), locker.token(), Eviction::kFreeNow,
              BootClock::now() + 60s);
  take("next");
  store->heal();
  EXPECT_TRUE(eventually([&] { return locker.lost().stop_requested(); }));
  EXPECT_EQ(locker.term().loss().reason, LossReason::kSuperseded);
  EXPECT_EQ(locker.term().loss().superseded_by, "next");
  locker.unlock();
  EXPECT_EQ(row().owner.id, "next");
  EXPECT_TRUE(row().owner.token > 0);
}

TEST_F(LockerTest, ATryThatWasNotAnsweredSaysSoAndTheNextOneForgetsIt) {
  SimbaLocker locker(client, "m");
  store->go_down();
  std::error_code error;
  const auto timed = [&] { return locker.try_lock_for(50ms, error); };
  const auto until = [&] {
    return locker.try_lock_until(std::chrono::steady_clock::now() + 50ms, error);
  };
  EXPECT_FALSE(locker.try_lock(error));
  EXPECT_EQ(error, Errc::kUnreachable);
  EXPECT_FALSE(timed());
  EXPECT_EQ(error, Errc::kUnreachable);
  EXPECT_FALSE(until());
  EXPECT_EQ(error, Errc::kUnreachable);
  store->heal();
  SimbaLocker other(client, "m");
  other.lock();
  EXPECT_FALSE(locker.try_lock(error));
  EXPECT_FALSE(error) << "it was somebody else's, that is no trouble";
  // On a machine that stands still, 50 ms may not be enough for an answer.
  EXPECT_TRUE(eventually([&] { return !timed() && !error; })) << error.message();
  EXPECT_TRUE(eventually([&] { return !until() && !error; })) << error.message();
  other.unlock();
  EXPECT_TRUE(locker.try_lock_for(20s, error)) << error.message();
}

TEST_F(LockerTest, AStoreThatGrantsLessThanTheGraceIsAnErrorWithBothSpans) {
  store->alter([](const testing::Asked::Claimed&, Answer& answer) {
    auto& seen = std::get<Observation>(answer);
    seen.owner.transition_at = std::min(seen.owner.transition_at, seen.now + 500ms);
  });
  SimbaLocker locker{client, "too-short"};
  try {
    locker.lock();
    ADD_FAILURE() << "it was acquired";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    EXPECT_NE(std::string{error.what()}.find("leases of 500 ms"), std::string::npos)
        << error.what();
  }
}

TEST_F(LockerTest, APermanentErrorIsThrownAndLeavesTheLockerUsable) {
  SimbaLocker locker(client, "m");
  for (const Errc code : {Errc::kDenied, Errc::kMisconfigured, Errc::kCorrupt}) {
    store->go_down(Error(code, "the reason"));
    try {
      locker.lock();
      ADD_FAILURE() << "locked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), code);
      EXPECT_NE(std::string(error.what()).find("the reason"), std::string::npos);
    }
    EXPECT_THROW(locker.try_lock(), Error);
    EXPECT_THROW(locker.try_lock_for(1s), Error);
    std::error_code error;
    EXPECT_FALSE(locker.lock(error));
    EXPECT_EQ(error, code);
    EXPECT_FALSE(locker.lock(std::stop_token{}, error));
    EXPECT_EQ(error, code);
    EXPECT_FALSE(locker.try_lock_for(20s, error));
    EXPECT_EQ(error, code);
    store->heal();
  }
  locker.lock();
  EXPECT_TRUE(locker.is_owner());
  locker.unlock();
}

TEST_F(LockerTest, ATransientErrorIsWaitedOut) {
  SimbaLocker locker(client, "m");
  store->go_down(Error(Errc::kUnreachable, "away"));
  EXPECT_FALSE(locker.try_lock());
  EXPECT_FALSE(locker.try_lock_for(100ms));
  std::thread healer([&] {
    std::this_thread::sleep_for(200ms);
    store->heal();
  });
  locker.lock();
  healer.join();
  EXPECT_TRUE(locker.is_owner());
  locker.unlock();
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, AnErrorOfTheFirstCallAndAHealthySecondIsALock) {
  SimbaLocker locker(client, "m");
  store->fail_before(Error(Errc::kTimeout, "once"));
  EXPECT_TRUE(locker.try_lock_for(20s));
  locker.unlock();
}

TEST_F(LockerTest, AnAmbiguousTryIsGivenBack) {
  SimbaLocker locker(client, "m");
  store->fail_after(Error(Errc::kTimeout, "lost answer"));
  EXPECT_FALSE(locker.try_lock());
  EXPECT_TRUE(is_left_free());
}

TEST_F(LockerTest, AnUnlockThatFailedIsRetriedInTheBackground) {
  SimbaLocker locker(client, "m");
  locker.lock();
  store->fail_before(Error(Errc::kUnreachable, "away"), 3);
  locker.unlock();
  EXPECT_FALSE(locker.is_owner());
  EXPECT_TRUE(is_left_free());
  EXPECT_TRUE(locker.try_lock_for(10s));
  locker.unlock();
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

TEST_F(LockerTest, TheMaximumHoldTimeEndsTheLock) {
  ContendOptions options = long_lease();
  options.max_hold = 200ms;
  SimbaLocker locker(client, "m", options);
  locker.lock();
  EXPECT_TRUE(eventually([&] { return locker.lost().stop_requested(); }));
  locker.unlock();
  EXPECT_TRUE(is_left_free());
  EXPECT_TRUE(locker.try_lock());
  locker.unlock();
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

// --- fork
// -------------------------------------------------------------------------------------------

// Runs `body` in a forked child: what it returns, or -1 when it crashed or hung.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    std::signal(SIGALRM, SIG_DFL);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(LockerTest, AForkedChildOwnsNothingAndHarmsNobody) {
  auto locker = std::make_unique<SimbaLocker>(client, "m");
  locker->lock();
  const Term term = locker->term();
  EXPECT_EQ(in_child([&] {
              if (locker->is_owner() || locker->is_in_ttl() || term.is_owner() || term.is_in_ttl())
                return 1;
              if (term.time_left() != 0ns) return 2;
              locker->unlock();
              std::error_code error;
              if (locker->try_lock(error) || error != Errc::kMisuse) return 3;
              locker.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(locker->is_owner());
  EXPECT_EQ(row().owner.id, term.wire_id());
  locker->unlock();
  EXPECT_TRUE(is_free());
}

TEST_F(LockerTest, InAForkedChildTheLastHandleMayGo) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto locker = std::make_unique<SimbaLocker>(*own, "m");
  locker->lock();
  EXPECT_EQ(in_child([&] {
              locker.reset();
              own.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(locker->is_owner());
}

// At the fork a thread of the parent waits; in the child that thread does not exist.
TEST_F(LockerTest, InAForkedChildDestructorsDoNotWaitForThreadsOfTheParent) {
  take("holder");
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto locker = std::make_unique<SimbaLocker>(*own, "m");
  std::stop_source stop;
  std::thread waiting([&] { locker->lock(stop.get_token()); });
  EXPECT_TRUE(eventually([&] { return store->watches() > 0; }));
  std::this_thread::sleep_for(100ms);  // it waits in earnest
  EXPECT_EQ(in_child([&] {
              locker.reset();
              own.reset();
              return 0;
            }),
            0)
      << "the child hung";
  stop.request_stop();
  waiting.join();
}

TEST_F(LockerTest, TheInitialDelayOfServicesHoldsUpNoLock) {
  ContendOptions options = long_lease();
  options.initial_delay = 1h;
  SimbaLocker locker(client, "m", options);
  EXPECT_TRUE(locker.try_lock());
}

}  // namespace
}  // namespace simba
