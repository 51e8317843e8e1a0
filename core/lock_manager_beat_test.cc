#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "simba/lock_manager.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

// The heartbeat of a lock manager, and what its parameters come to, in virtual time.
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
    return all;
  }
  const StoreTraits& traits() const override {
    forgetful = FaultyStore::traits();
    forgetful.forgets_expired = forgets;
    return forgetful;
  }
  bool is_blind = false, is_hasty = false, forgets = false;
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
  Token take_and_forget(std::string_view name) {
    const Claim claim{name, "dead~1", 0, 0, 2s, 1s};
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

TEST_F(LockManagerBeatTest, LockingAgainAfterALossIsANewTerm) {
  LockManager::Lock& lock = hold("a");
  const Term first = lock.term();
  client->evict("a", first.wire_id(), first.token(), Eviction::kFreeNow);
  EXPECT_TRUE(lock.try_lock());
  EXPECT_GT(lock.token(), first.token());
  EXPECT_TRUE(first.lost().stop_requested());
}

// --- the six parameters --------------------------------------------------------------------------

std::string refusal(const std::function<void(TemporalAlignmentStrategy&)>& change) {
  TemporalAlignmentStrategy strategy;
  change(strategy);
  try {
    static_cast<void>(strategy.contend_options(strategy.lock_ttl));
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

TEST(TemporalAlignmentStrategyTest, TheLeaseIsTheTtlTimesTheBuffer) {
  const ContendOptions options = TemporalAlignmentStrategy{}.contend_options(4s);
  EXPECT_EQ(options.ttl, 4s);
  EXPECT_EQ(options.ttl + options.transition, 4400ms) << "as in the article's document";
}

TEST(TemporalAlignmentStrategyTest, AnOwnerRenewsAtTheBeatOrAtTwoThirdsOfAShortTtl) {
  const TemporalAlignmentStrategy strategy;
  EXPECT_EQ(Timing::of(strategy.contend_options(10s)).renew / 1ms, 2000);
  EXPECT_EQ(Timing::of(strategy.contend_options(1500ms)).renew / 1ms, 1000);
}

TEST(TemporalAlignmentStrategyTest, TheRestOfTheParametersComesToTheEnginesOptions) {
  TemporalAlignmentStrategy strategy;
  strategy.base_backoff = 7ms;
  strategy.max_jitter = 70ms;
  strategy.max_delay = 300ms;
  const ContendOptions options = strategy.contend_options(10s);
  EXPECT_EQ(options.min_backoff, 7ms);
  EXPECT_EQ(options.max_backoff, 300ms);
  EXPECT_EQ(options.jitter, (Jitter{0ms, 70ms}));
  EXPECT_EQ(options.safety_poll, 300ms);
  strategy.max_delay = 10s;
  EXPECT_EQ(strategy.contend_options(10s).max_backoff, 625ms) << "two tries fit into the lease";
}

TEST(TemporalAlignmentStrategyTest, ParametersAreValidatedTogether) {
  EXPECT_EQ(refusal([](auto&) {}), "none");
  EXPECT_THAT(refusal([](auto& s) { s.lock_ttl_buffer_coefficient = 0.9; }), HasSubstr("0.9"));
  EXPECT_THAT(refusal([](auto& s) { s.lock_ttl_buffer_coefficient = 1.0 / 0.0 - 1.0 / 0.0; }),
              HasSubstr("coefficient"));
  EXPECT_THAT(refusal([](auto& s) { s.lock_ttl = 2s; }),
              ::testing::AllOf(HasSubstr("beat_interval is 2000 ms"), HasSubstr("2000 ms")));
  EXPECT_THAT(refusal([](auto& s) { s.beat_interval = 0ms; }), HasSubstr("at least 1 ms"));
  EXPECT_THAT(refusal([](auto& s) { s.base_backoff = 2s; }), HasSubstr("max_delay"));
  EXPECT_THAT(refusal([](auto& s) { s.max_jitter = 2s; }), HasSubstr("max_delay"));
  EXPECT_THAT(refusal([](auto& s) { s.max_jitter = -1ms; }), HasSubstr("-1 ms"));
  EXPECT_THAT(refusal([](auto& s) {
                s.lock_ttl = 10ms;
                s.beat_interval = 1ms;
              }),
              HasSubstr("ttl 10 ms"));
}

}  // namespace
}  // namespace simba
