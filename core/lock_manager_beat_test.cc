#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simba/lock_manager.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

// The heartbeat of a lock manager, in virtual time.
namespace simba {
namespace {

using namespace std::chrono_literals;
using testing::FakeExecutor;
using testing::FaultyStore;
using ::testing::HasSubstr;

// Does not answer questions when told so.
class BlindableStore : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    if (is_blind) throw Error(Errc::kDenied, "no reading for you");
    return FaultyStore::observe(mutexes, deadline);
  }
  // Lists everything as it will be an hour later.
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    std::vector<Listed> all = FaultyStore::list(prefix, after, limit, deadline);
    listed += all.size();
    for (Listed& each : all) each.observation.now += is_hasty ? 1h : 0h;
    if (after_list) after_list();
    return all;
  }
  const StoreTraits& traits() const override {
    forgetful = FaultyStore::traits();
    forgetful.forgets_expired = forgets;
    return forgetful;
  }
  bool is_blind = false, is_hasty = false, forgets = false;
  std::function<void()> after_list;
  mutable StoreTraits forgetful;
  std::size_t listed = 0;
};

class LockManagerBeatTest : public ::testing::Test {
 protected:
  LockManagerBeatTest() {
    ClientOptions options;
    options.executor = executor;
    options.log = [this](LogLevel, std::string_view line) { lines.emplace_back(line); };
    client = std::make_unique<Client>(store, options);
    manager = std::make_unique<LockManager>(LockManager::of(*client));
    manager->on_beat([this](const Beat& beat) { beats.push_back(beat); });
  }
  ~LockManagerBeatTest() override {
    locks.clear();
    executor->advance(1min);
  }

  LockManager::Lock& hold(const std::string& id, milliseconds ttl = 10s) {
    locks.push_back(manager->create_lock(id, ttl));
    locks.back().lock();
    return locks.back();
  }
  Observation row(std::string_view name) {
    return std::get<Observation>(rows->observe({&name, 1}, executor->now() + 1s).at(0));
  }
  Token take_and_forget(std::string_view name, std::string_view id = "dead~1") {
    const Claim claim{name, id, 0, 0, 2s, 1s};
    return std::get<Observation>(rows->contend({&claim, 1}, executor->now() + 1s).at(0))
        .owner.token;
  }

  const std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  const std::shared_ptr<Store> rows = make_memory(executor->store_clock());
  const std::shared_ptr<BlindableStore> store = std::make_shared<BlindableStore>(rows);
  std::vector<std::string> lines;
  std::vector<Beat> beats;
  std::unique_ptr<Client> client;
  std::unique_ptr<LockManager> manager;
  std::vector<LockManager::Lock> locks;
};

TEST_F(LockManagerBeatTest, ABeatForEachIntervalInWhichLocksAreRenewed) {
  for (const char* id : {"a", "b", "c"}) hold(id);
  executor->advance(1999ms);
  EXPECT_TRUE(beats.empty());
  store->forget();
  executor->advance(11s);
  ASSERT_EQ(beats.size(), 6u) << "at 2, 4, 6, 8, 10 and 12 s";
  for (const Beat& beat : beats) {
    EXPECT_EQ(beat.renewed, 3u);
    EXPECT_EQ(beat.failed, 0u);
    EXPECT_FALSE(beat.trouble);
  }
  EXPECT_EQ(store->renewals(), 6u) << "one call renews all that are held";
}

TEST_F(LockManagerBeatTest, LocksThatWereTakenAtDifferentTimesAreRenewedTogether) {
  constexpr std::size_t kLocks = 1'000;
  constexpr int kPeriods = 5;
  std::map<std::string, LocalTime> last;
  nanoseconds longest{};
  store->alter([&](const testing::Asked::Claimed& claim, const Answer&) {
    const auto [it, is_first] = last.try_emplace(claim.mutex, executor->now());
    longest = std::max(longest, executor->now() - std::exchange(it->second, executor->now()));
  });
  for (std::size_t i = 0; i < kLocks; ++i) {
    hold("row/" + std::to_string(i));
    executor->advance(nanoseconds{2s} / kLocks);
  }
  store->forget();
  beats.clear();
  executor->advance(kPeriods * 2s);
  EXPECT_EQ(store->renewals(), 4U * kPeriods) << "of 1,000 each period one by one";
  EXPECT_LE(longest, 2s) << "none is late";
  ASSERT_EQ(beats.size(), static_cast<std::size_t>(kPeriods));
  for (const Beat& beat : beats) EXPECT_EQ(beat.renewed, kLocks);
  store->alter({});
}

TEST_F(LockManagerBeatTest, WithoutALockThereIsNothingToBeat) {
  hold("a").unlock();
  executor->advance(1min);
  EXPECT_TRUE(beats.empty());
}

TEST_F(LockManagerBeatTest, AHeldLockOutlivesItsTtlManyTimes) {
  LockManager::Lock& lock = hold("a", 4s);
  const Token token = lock.token();
  executor->advance(1min);
  EXPECT_TRUE(lock.is_in_ttl());
  EXPECT_EQ(lock.token(), token);
}

TEST_F(LockManagerBeatTest, TheTimeDeltaIsMeasuredAndShown) {
  hold("a");
  EXPECT_FALSE(manager->time_delta());
  executor->advance(2s);
  ASSERT_TRUE(manager->time_delta());
  ASSERT_EQ(beats.size(), 1u);
  EXPECT_EQ(beats[0].time_delta, manager->time_delta());
  const auto ours = std::chrono::system_clock::now().time_since_epoch();
  const auto expected =
      row("a").now.time_since_epoch() - std::chrono::duration_cast<milliseconds>(ours);
  EXPECT_NEAR(static_cast<double>((*manager->time_delta() - expected).count()), 0, 5'000);
}

TEST_F(LockManagerBeatTest, ExpiredRecordsLoseTheirOwnerAndKeepTheirToken) {
  const Token token = take_and_forget("left");
  take_and_forget("running");
  hold("a");
  executor->advance(2500ms);
  ASSERT_EQ(beats.size(), 1u);
  EXPECT_EQ(beats[0].cleared, 0u) << "their leases run";
  EXPECT_EQ(row("left").owner.id, "dead~1");
  executor->advance(2s);
  ASSERT_EQ(beats.size(), 2u);
  EXPECT_EQ(beats[1].cleared, 2u);
  EXPECT_EQ(row("left").owner.id, "");
  EXPECT_EQ(row("left").owner.token, token);
  EXPECT_GT(take_and_forget("left"), token) << "the token goes on";
  EXPECT_FALSE(row("a").owner.id.empty()) << "what is held is left alone";
}

// A contender of an old JVM version has the same id and the same token again.
TEST_F(LockManagerBeatTest, WhoOwnsAgainSinceItWasListedLosesItsNameButNobodyEntersEarly) {
  take_and_forget("again");
  const StoreTime ends = row("again").owner.transition_at;
  store->is_hasty = true;
  EXPECT_EQ(manager->beat().cleared, 1u);
  EXPECT_FALSE(row("again").is_free());
  EXPECT_EQ(row("again").owner.transition_at, ends);
}

TEST_F(LockManagerBeatTest, WhatSomebodyTookSinceItWasListedIsNotCountedAsCleared) {
  take_and_forget("left");
  take_and_forget("taken");
  executor->advance(4s);
  store->after_list = [&] { take_and_forget("taken", "alive~1"); };
  EXPECT_EQ(manager->beat().cleared, 1u);
  EXPECT_EQ(row("taken").owner.id, "alive~1");
  EXPECT_EQ(row("left").owner.id, "");
}

TEST_F(LockManagerBeatTest, WhatIsClearedCanBeBoundToAPrefixOrForbidden) {
  take_and_forget("mine/1");
  take_and_forget("other/1");
  manager->clear_expired("mine/");
  hold("a");
  executor->advance(5s);
  EXPECT_EQ(row("mine/1").owner.id, "");
  EXPECT_EQ(row("other/1").owner.id, "dead~1");
  manager->clear_expired(std::nullopt);
  take_and_forget("mine/1");
  executor->advance(10s);
  EXPECT_EQ(row("mine/1").owner.id, "dead~1");
}

TEST_F(LockManagerBeatTest, AllNamesHaveTheirTurnBeatByBeat) {
  const auto name = [](int i) { return "row/" + std::to_string(10'000 + i); };
  constexpr int kNames = 2'500;
  // The first are free already: there is nothing to clear among them.
  for (int i = 0; i < kNames; ++i) {
    const std::string id = name(i);
    take_and_forget(id);
    const Claim claim{id, "dead~1", 0, 0, 2s, 1s};
    if (i < kNames - 150) rows->release({&claim, 1}, executor->now() + 1s);
  }
  executor->advance(4s);
  std::vector<std::size_t> cleared;
  for (int i = 0; i < 4; ++i) {
    store->listed = 0;
    cleared.push_back(manager->beat().cleared);
    EXPECT_LE(store->listed, 1'000U) << "no beat begins at the first name again";
  }
  EXPECT_THAT(cleared, ::testing::ElementsAre(0, 0, 100, 50)) << "1,000 names a beat, 100 of them";
  EXPECT_EQ(row(name(kNames - 1)).owner.id, "");
  take_and_forget(name(0));
  executor->advance(4s);
  EXPECT_EQ(manager->beat().cleared, 1U) << "and then from the beginning";
}

TEST_F(LockManagerBeatTest, WhereNothingOfAnExpiredLeaseIsLeftNothingIsListed) {
  store->forgets = true;
  take_and_forget("left");
  executor->advance(4s);
  store->listed = 0;
  EXPECT_EQ(manager->beat().cleared, 0U);
  EXPECT_EQ(store->listed, 0U);
}

TEST_F(LockManagerBeatTest, ABeatSurvivesItsOwnErrors) {
  LockManager::Lock& lock = hold("a");
  int told = 0;
  manager->on_beat([&](const Beat& beat) {
    ++told;
    beats.push_back(beat);
    throw std::runtime_error("in the user's hook");
  });
  store->is_blind = true;
  executor->advance(4s);
  ASSERT_EQ(told, 2);
  ASSERT_TRUE(beats.back().trouble);
  EXPECT_THAT(beats.back().trouble->what(), HasSubstr("no reading for you"));
  EXPECT_EQ(beats.back().renewed, 1u);
  store->is_blind = false;
  executor->advance(2s);
  EXPECT_EQ(told, 3);
  EXPECT_FALSE(beats.back().trouble);
  EXPECT_TRUE(lock.is_in_ttl());
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("on_beat threw: in the user's hook")));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("the heartbeat goes on after trouble")));
}

TEST_F(LockManagerBeatTest, ABeatInsideABeatIsRefused) {
  hold("a");
  std::optional<Error> trouble;
  manager->on_beat([&](const Beat&) { trouble = manager->beat().trouble; });
  executor->advance(2s);
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->errc(), Errc::kMisuse);
}

TEST_F(LockManagerBeatTest, AThreadThatEndsOnlyEnqueuesTheReleaseAndABeatCountsIt) {
  hold("kept");
  std::unique_ptr<LockManager::Lock> lock;
  std::thread([&] {
    lock = std::make_unique<LockManager::Lock>(manager->create_lock("left"));
    lock->lock();
    store->forget();
  }).join();
  EXPECT_EQ(store->calls(), 0u) << "no I/O at the end of a thread";
  EXPECT_FALSE(row("left").is_free());
  executor->run();
  EXPECT_EQ(store->releases(), 1u);
  EXPECT_TRUE(row("left").is_free());
  executor->advance(2s);
  ASSERT_EQ(beats.size(), 1u);
  EXPECT_EQ(beats[0].released, 1u);
  EXPECT_EQ(manager->held(), 1u);
}

TEST_F(LockManagerBeatTest, AThreadThatEndsWithTheLastLocksIsABeatOfItsOwn) {
  take_and_forget("dead");
  executor->advance(4s);
  std::vector<LockManager::Lock> left;
  std::thread([&] {
    for (const char* id : {"left/1", "left/2"}) {
      left.push_back(manager->create_lock(id));
      left.back().lock();
    }
  }).join();
  EXPECT_TRUE(beats.empty()) << "not on the thread that ends";
  executor->run();
  ASSERT_EQ(beats.size(), 1u) << "nothing is left to renew";
  EXPECT_EQ(beats[0].released, 2u);
  EXPECT_EQ(beats[0].cleared, 1u);
  executor->advance(1min);
  EXPECT_EQ(beats.size(), 1u);
  std::thread([&] { left[0].lock(); }).join();
  executor->run();
  ASSERT_EQ(beats.size(), 2u) << "and so is the next";
  EXPECT_EQ(beats[1].released, 1u);
}

// Its thread has not heard of it yet; nothing renews it, so nothing would set off the beat.
TEST_F(LockManagerBeatTest, ALockThatWasLostKeepsNobodyFromHearingOfAThreadThatEnded) {
  const Term term = hold("kept").term();
  client->evict("kept", term.wire_id(), term.token(), Eviction::kFreeNow);
  executor->advance(10s);
  ASSERT_FALSE(term.is_owner());
  EXPECT_EQ(manager->held(), 0u);
  beats.clear();
  std::unique_ptr<LockManager::Lock> left;
  std::thread([&] {
    left = std::make_unique<LockManager::Lock>(manager->create_lock("left"));
    left->lock();
    EXPECT_EQ(manager->held(), 1u);
  }).join();
  executor->run();
  ASSERT_EQ(beats.size(), 1u);
  EXPECT_EQ(beats[0].released, 1u);
}

TEST_F(LockManagerBeatTest, WhenTheLastLockGoesAfterAThreadThatEndedABeatTellsOfThat) {
  for (const bool is_lost : {true, false}) {
    LockManager::Lock& kept = hold(is_lost ? "lost" : "unlocked");
    const Term term = kept.term();
    std::unique_ptr<LockManager::Lock> left;
    std::thread([&] {
      left = std::make_unique<LockManager::Lock>(manager->create_lock("left"));
      left->lock();
    }).join();
    executor->run();
    EXPECT_TRUE(beats.empty()) << "its next renewal will tell";
    if (is_lost) {
      client->evict("lost", term.wire_id(), term.token(), Eviction::kFreeNow);
      executor->advance(10s);
    } else {
      kept.unlock();
      executor->run();
    }
    ASSERT_EQ(beats.size(), 1u) << (is_lost ? "lost" : "unlocked");
    EXPECT_EQ(beats[0].released, 1u);
    beats.clear();
  }
}

TEST_F(LockManagerBeatTest, TheDestructorOfALockDoesNoIoEither) {
  hold("a");
  store->forget();
  locks.clear();
  EXPECT_EQ(store->calls(), 0u);
  executor->run();
  EXPECT_TRUE(row("a").is_free());
}

TEST_F(LockManagerBeatTest, LockingAgainExtendsTheLeaseInOneCall) {
  LockManager::Lock& lock = hold("a");
  const Token token = lock.token();
  const StoreTime end = row("a").owner.transition_at;
  executor->advance(1s);
  store->forget();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_EQ(store->calls(), 1u);
  EXPECT_EQ(store->renewals(), 1u);
  EXPECT_EQ(row("a").owner.transition_at, end + 1s);
  EXPECT_EQ(lock.token(), token);
  executor->advance(1500ms);
  EXPECT_EQ(store->renewals(), 1u) << "the next beat counts from there";
  EXPECT_EQ(lock.term().time_left(), 10s + 1s - 610ms - 1500ms);
}

TEST_F(LockManagerBeatTest, WhoLocksAgainHearsThatTheStoreRefusedAndTheNextIsANewTerm) {
  LockManager::Lock& lock = hold("a");
  std::error_code error;
  const std::stop_token never;
  const std::vector<std::function<bool()>> ways{
      [&] { return lock.lock(), true; },   [&] { return lock.lock(never); },
      [&] { return lock.lock(error); },    [&] { return lock.lock(never, error); },
      [&] { return lock.try_lock(); },     [&] { return lock.try_lock_for(1s); },
      [&] { return lock.try_lock(error); }};
  std::vector<std::string> heard;
  for (const auto& way : ways) {
    const Term term = lock.term();
    client->evict("a", term.wire_id(), term.token(), Eviction::kFreeNow);
    error.clear();
    try {
      heard.emplace_back(way() ? "yes" : error ? "code" : "no");
    } catch (const Error& thrown) {
      EXPECT_EQ(thrown.errc(), Errc::kMisuse);
      EXPECT_THAT(thrown.what(), ::testing::AllOf(HasSubstr("'a' was lost"), HasSubstr("evicted")));
      heard.emplace_back("thrown");
    }
    EXPECT_TRUE(term.lost().stop_requested());
    EXPECT_FALSE(lock.is_owner());
    EXPECT_TRUE(row("a").is_free()) << "nothing was taken instead";
    EXPECT_EQ(manager->held(), 0U);
    ASSERT_TRUE(lock.try_lock());
    EXPECT_GT(lock.token(), term.token());
  }
  EXPECT_THAT(heard, ::testing::ElementsAre("thrown", "thrown", "code", "code", "no", "no", "no"));
}

TEST_F(LockManagerBeatTest, LockingAgainTakesNoLongerThanItsPatience) {
  LockManager::Lock& lock = hold("a", 30s);
  std::error_code error;
  const auto time_for = [&](const std::function<void()>& way) {
    store->forget();
    way();
    return store->asked().at(0).deadline - executor->now();
  };
  const nanoseconds whole = time_for([&] { lock.lock(); });
  EXPECT_GT(whole, 1s);
  EXPECT_LE(time_for([&] { lock.try_lock_for(100ms); }), 100ms);
  EXPECT_LE(time_for([&] { lock.try_lock_for(100ms, error); }), 100ms);
  EXPECT_EQ(time_for([&] { lock.try_lock_for(1h); }), whole);
  EXPECT_EQ(time_for([&] { lock.try_lock(); }), whole) << "one call, as long as it may take";
  EXPECT_EQ(time_for([&] { lock.try_lock_for(0s); }), whole);
}

// The lease runs on, and so do the renewals.
TEST_F(LockManagerBeatTest, LockingAgainWhileTheStoreIsAwayEndsNothing) {
  LockManager::Lock& lock = hold("a");
  const Token token = lock.token();
  store->go_down();
  EXPECT_TRUE(lock.try_lock());
  lock.lock();
  EXPECT_EQ(lock.token(), token);
  store->heal();
  executor->advance(1min);
  EXPECT_EQ(lock.token(), token);
  EXPECT_TRUE(lock.is_in_ttl());
}

}  // namespace
}  // namespace simba
