// The lock in trouble: evicted, without an answer, in a forked child.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/locker_fixture.h"

namespace simba {
namespace {

TEST_F(LockerTest, AnEvictedOwnerHearsOfItAndCanLockAgain) {
  SimbaLocker locker(client, "m", soon_renewed());
  locker.lock();
  const Term term = locker.term();
  std::error_code error;
  EXPECT_TRUE(locker.renew(error));
  EXPECT_FALSE(error) << error.message();
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
  ContendOptions options = long_lease();
  options.max_backoff = 100ms;  // between the tries; by itself it grows with the lease
  SimbaLocker locker(client, "m", options);
  locker.lock();
  store->fail_before(Error(Errc::kUnreachable, "away"), 3);
  locker.unlock();
  EXPECT_FALSE(locker.is_owner());
  EXPECT_TRUE(is_left_free());
  EXPECT_TRUE(locker.try_lock_for(10s));
  locker.unlock();
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
              error.clear();
              if (locker->renew(error) || error != Errc::kMisuse) return 4;
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

}  // namespace
}  // namespace simba
