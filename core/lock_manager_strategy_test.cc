#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "simba/async.h"
#include "simba/lock_manager.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

// What the six parameters of a lock manager come to, in virtual time.
namespace simba {
namespace {

using namespace std::chrono_literals;
using testing::FakeExecutor;
using testing::FaultyStore;
using ::testing::HasSubstr;

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
  EXPECT_EQ(options.first_poll, 7ms);
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

TEST(TemporalAlignmentStrategyTest, NoParameterOverflows) {
  constexpr milliseconds kMost = milliseconds::max();
  for (const milliseconds beat : {kMost, kMost / 2, kMost / 3 + 1ms}) {
    EXPECT_THAT(refusal([&](auto& s) { s.beat_interval = beat; }), HasSubstr("beat_interval is "))
        << beat.count();
  }
  EXPECT_THAT(refusal([&](auto& s) { s.lock_ttl = kMost; }), HasSubstr("one year"));
  EXPECT_THAT(refusal([&](auto& s) { s.beat_interval = s.lock_ttl = kMost / 2; }),
              HasSubstr("beat_interval is "));
  EXPECT_THAT(refusal([&](auto& s) { s.max_delay = kMost; }), HasSubstr("one year"));
}

// How long a waiter leaves a store alone that cannot push, from one question to the next, while
// somebody else holds the lock.
std::vector<nanoseconds> pauses(const TemporalAlignmentStrategy& strategy, std::uint64_t seed) {
  const auto executor = std::make_shared<FakeExecutor>(seed);
  const auto rows = make_memory(executor->store_clock());
  const auto store = std::make_shared<FaultyStore>(rows);
  store->cannot_push();
  ClientOptions options;
  options.executor = executor;
  const Client client(store, options);
  const Claim other{"a", "other~1", 0, 0, 1h, 0ms};
  rows->contend({&other, 1}, {});
  AcquireOptions wish;
  wish.contend = strategy.contend_options(10s);
  PendingAcquire waiter = acquire_async(client, "a", wish, [](const Acquired&) {});
  executor->run();
  std::vector<nanoseconds> found;
  for (LocalTime last = executor->now(); found.size() < 12;) {
    store->forget();
    while (store->calls() == 0) executor->advance(1ms);
    found.push_back(executor->now() - last);
    last = executor->now();
  }
  waiter.cancel();
  executor->advance(1min);
  return found;
}

TEST(TemporalAlignmentStrategyTest, AWaiterBacksOffWhereTheStoreCannotPush) {
  TemporalAlignmentStrategy strategy;
  strategy.max_jitter = 0ms;
  EXPECT_THAT(pauses(strategy, 1), ::testing::ElementsAre(10ms, 20ms, 40ms, 80ms, 160ms, 320ms,
                                                          640ms, 1s, 1s, 1s, 1s, 1s));
}

TEST(TemporalAlignmentStrategyTest, EachPauseOfAWaiterHasItsOwnJitter) {
  TemporalAlignmentStrategy strategy;
  strategy.max_jitter = 50ms;
  std::vector<nanoseconds> firsts;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<nanoseconds> found = pauses(strategy, seed);
    nanoseconds least = 10ms;
    for (const nanoseconds pause : found) {
      EXPECT_GE(pause, std::min<nanoseconds>(least, 1s));
      EXPECT_LE(pause, std::min<nanoseconds>(least + 51ms, 1s));
      least = std::min<nanoseconds>(2 * least, 1s);
    }
    firsts.push_back(found.front());
  }
  std::sort(firsts.begin(), firsts.end());
  EXPECT_LT(firsts.front(), 25ms);
  EXPECT_GT(firsts.back(), 45ms);
}

}  // namespace
}  // namespace simba
