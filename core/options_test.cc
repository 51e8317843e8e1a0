#include "simba/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "simba/error.h"

namespace simba {
namespace {

using namespace std::chrono_literals;

std::string refusal_of(const ContendOptions& options) {
  try {
    Timing::of(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
  return {};
}

void expect_refused(const ContendOptions& options, std::initializer_list<const char*> words) {
  const std::string text = refusal_of(options);
  ASSERT_FALSE(text.empty()) << "it was accepted";
  for (const char* word : words) EXPECT_NE(text.find(word), text.npos) << word << " in: " << text;
}

ContendOptions of(milliseconds ttl, milliseconds transition) {
  ContendOptions options;
  options.ttl = ttl;
  options.transition = transition;
  return options;
}

TEST(TimingTest, FollowsTheFormulasAtTheDefaults) {
  const Timing timing = Timing::of({});
  EXPECT_EQ(timing.lease(), 16s);
  EXPECT_EQ(timing.grace, 1s);
  EXPECT_EQ(timing.revoke_at, 16s - (1s + 160ms));  // guard: grace and 1 % of the lease
  EXPECT_EQ(timing.ttl_end, 10s);
  EXPECT_NEAR(static_cast<double>(timing.renew.count()), 10e9 * 2 / 3, 2);
  EXPECT_EQ(timing.call_deadline, 1250ms);
  EXPECT_EQ(timing.max_backoff, 625ms);
}

TEST(TimingTest, TheDefaultsAreThoseOfTheJvmProject) {
  const ContendOptions options;
  EXPECT_EQ(options.initial_delay, 0ms);
  EXPECT_EQ(options.ttl, 10s);
  EXPECT_EQ(options.transition, 6s);
  EXPECT_EQ(options.jitter, (Jitter{-200ms, 1000ms}));
  EXPECT_EQ(options.max_hold, 0ms) << "a healthy owner keeps it";
}

// Development, conservative, fast failover, minimal load.
TEST(TimingTest, TheTuningsOfTheGuideAreAccepted) {
  for (const auto& [ttl, transition] : std::initializer_list<std::pair<milliseconds, milliseconds>>{
           {2s, 5s}, {10s, 10s}, {3s, 5s}, {30s, 30s}}) {
    const Timing timing = Timing::of(of(ttl, transition));
    EXPECT_EQ(timing.lease(), ttl + transition);
    EXPECT_EQ(timing.ttl_end, ttl) << "the owner may work for the whole ttl";
    EXPECT_LE(timing.revoke_at + timing.grace + 50ms, timing.lease());
    EXPECT_LE(timing.renew + 2 * timing.call_deadline + timing.max_backoff, timing.ttl_end);
  }
}

TEST(TimingTest, TheGraceIsHalfTheTransitionButAtMostOneSecond) {
  EXPECT_EQ(Timing::of(of(10s, 1s)).grace, 500ms);
  EXPECT_EQ(Timing::of(of(10s, 2s)).grace, 1s);
  EXPECT_EQ(Timing::of(of(10s, 60s)).grace, 1s);
  EXPECT_EQ(Timing::of(of(10s, 0s)).grace, 0s);
}

TEST(TimingTest, TheMarginIsOnePercentOfTheLeaseButAtLeastFiftyMilliseconds) {
  EXPECT_EQ(Timing::of(of(1s, 0s)).revoke_at, 950ms);
  EXPECT_EQ(Timing::of(of(5s, 0s)).revoke_at, 4950ms);
  EXPECT_EQ(Timing::of(of(100s, 0s)).revoke_at, 99s);
}

TEST(TimingTest, WithoutATransitionTheTtlEndsWithTheOwnership) {
  const Timing timing = Timing::of(of(10s, 0s));
  EXPECT_EQ(timing.revoke_at, 9900ms);
  EXPECT_EQ(timing.ttl_end, timing.revoke_at);
  EXPECT_EQ(timing.call_deadline, timing.ttl_end / 8);
  EXPECT_EQ(timing.max_backoff, timing.ttl_end / 16);
}

TEST(TimingTest, TheOwnershipAlwaysEndsBeforeTheLease) {
  for (const milliseconds ttl : {150ms, 1000ms, 10000ms, 3600000ms}) {
    for (const milliseconds transition : {0ms, 10ms, 6000ms, 60000ms}) {
      const Timing timing = Timing::of(of(ttl, transition));
      EXPECT_LE(timing.revoke_at + timing.grace + 50ms, timing.lease());
      EXPECT_LE(timing.ttl_end, timing.revoke_at);
      EXPECT_LE(timing.ttl_end, timing.ttl);
    }
  }
}

TEST(TimingTest, TwoAttemptsToRenewFitIntoTheTtlOfEveryAcceptedLease) {
  for (const milliseconds ttl : {150ms, 200ms, 1000ms, 10000ms}) {
    const Timing timing = Timing::of(of(ttl, 0ms));
    EXPECT_LE(timing.renew + 2 * timing.call_deadline + timing.max_backoff, timing.ttl_end);
  }
}

TEST(TimingTest, TheSmallestLeaseIsOneHundredAndFiftyMilliseconds) {
  EXPECT_EQ(Timing::of(of(150ms, 0ms)).ttl_end, 100ms);
  expect_refused(of(149ms, 0ms), {"149 ms", "99 ms", "100 ms"});
}

TEST(TimingTest, RefusesAGraceThatLeavesLessThanHalfTheTtl) {
  ContendOptions options = of(10s, 0s);
  options.grace = 4900ms;
  EXPECT_EQ(Timing::of(options).ttl_end, 5s);
  options.grace = 4901ms;
  expect_refused(options, {"10000 ms", "4901 ms", "4999 ms", "half"});
}

TEST(TimingTest, RefusesAGraceLongerThanTheLeaseWithoutANegativeNumber) {
  ContendOptions options;
  options.grace = 20s;
  expect_refused(options, {"20000 ms", "for 0 ms"});
}

TEST(TimingTest, RefusesARenewalThatCannotBeRepeatedInTime) {
  ContendOptions options;
  options.call_deadline = 5s;
  expect_refused(options, {"5000 ms", "14840 ms", "call deadline"});
}

TEST(TimingTest, RenewsAtTheEndOfTheTtlWhereTheTransitionPaysForIt) {
  ContendOptions options;
  options.renew_at = 1.0;
  EXPECT_EQ(Timing::of(options).renew, 10s);
  options.transition = 0ms;
  expect_refused(options, {"9900 ms", "renew earlier"});
}

TEST(TimingTest, RefusesAShareOfTimeThatIsNone) {
  for (const double share :
       {0.0, -0.5, 1.0001, std::nan(""), std::numeric_limits<double>::infinity()}) {
    ContendOptions options;
    options.renew_at = share;
    expect_refused(options, {"renew_at", "at most 1"});
  }
}

TEST(TimingTest, EveryDurationOutOfRangeIsNamedWithItsLimit) {
  struct Row {
    const char* name;
    void (*set)(ContendOptions&, milliseconds);
    milliseconds least;
  };
  const Row rows[] = {
      {"ttl", [](ContendOptions& o, milliseconds v) { o.ttl = v; }, 1ms},
      {"transition", [](ContendOptions& o, milliseconds v) { o.transition = v; }, 0ms},
      {"initial delay", [](ContendOptions& o, milliseconds v) { o.initial_delay = v; }, 0ms},
      {"maximum hold time", [](ContendOptions& o, milliseconds v) { o.max_hold = v; }, 0ms},
      {"grace", [](ContendOptions& o, milliseconds v) { o.grace = v; }, 0ms},
      {"call deadline", [](ContendOptions& o, milliseconds v) { o.call_deadline = v; }, 1ms},
      {"longest backoff", [](ContendOptions& o, milliseconds v) { o.max_backoff = v; }, 1ms},
      {"shortest backoff", [](ContendOptions& o, milliseconds v) { o.min_backoff = v; }, 1ms},
      {"safety poll", [](ContendOptions& o, milliseconds v) { o.safety_poll = v; }, 0ms},
      {"first poll", [](ContendOptions& o, milliseconds v) { o.first_poll = v; }, 1ms},
  };
  for (const Row& row : rows) {
    ContendOptions small, large;
    row.set(small, row.least - 1ms);
    expect_refused(small, {row.name, row.least == 0ms ? "-1 ms" : "0 ms", "one year"});
    row.set(large, milliseconds::max());
    expect_refused(large, {row.name, "9223372036854775807 ms", "one year"});
  }
}

TEST(TimingTest, NoDurationOverflows) {
  const milliseconds year = std::chrono::hours{24 * 365};
  ContendOptions options = of(year, year);
  options.max_hold = options.initial_delay = year;
  const Timing timing = Timing::of(options);
  EXPECT_EQ(timing.lease(), 2 * year);
  EXPECT_EQ(timing.ttl_end, year);
  EXPECT_GT(timing.revoke_at, year);
  EXPECT_FALSE(refusal_of(of(year + 1ms, 0ms)).empty());
}

TEST(TimingTest, RefusesAJitterThatEndsBeforeItBegins) {
  ContendOptions options;
  options.jitter = {10ms, 9ms};
  expect_refused(options, {"jitter", "10 ms", "9 ms"});
  options.jitter = {10ms, 10ms};
  EXPECT_EQ(refusal_of(options), "");
}

TEST(TimingTest, RefusesAFirstPollThatIsLongerThanThoseAfterIt) {
  ContendOptions options;
  options.first_poll = 301ms;
  options.safety_poll = 300ms;
  expect_refused(options, {"first poll", "301 ms", "300 ms"});
  options.first_poll = 300ms;
  EXPECT_EQ(refusal_of(options), "");
}

TEST(TimingTest, RefusesAShortestBackoffAboveTheLongest) {
  ContendOptions options;
  options.min_backoff = 101ms;
  options.max_backoff = 100ms;
  expect_refused(options, {"shortest backoff is 101 ms", "longest 100 ms"});
  options.min_backoff = 100ms;
  EXPECT_EQ(refusal_of(options), "");
  options.max_backoff.reset();  // 625 ms
  options.min_backoff = 626ms;
  expect_refused(options, {"shortest backoff is 626 ms", "longest 625 ms"});
}

TEST(TimingTest, WhatTheOptionsSayIsTaken) {
  ContendOptions options;
  options.grace = 250ms;
  options.call_deadline = 300ms;
  options.max_backoff = 100ms;
  options.min_backoff = 40ms;
  options.renew_at = 0.5;
  const Timing timing = Timing::of(options);
  EXPECT_EQ(timing.grace, 250ms);
  EXPECT_EQ(timing.revoke_at, 16s - 410ms);
  EXPECT_EQ(timing.call_deadline, 300ms);
  EXPECT_EQ(timing.max_backoff, 100ms);
  EXPECT_EQ(timing.min_backoff, 40ms);
  EXPECT_EQ(timing.renew, 5s);
}

}  // namespace
}  // namespace simba
