#include "simba/contend_period.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace simba {
namespace {

using namespace std::chrono_literals;

constexpr StoreTime kNow{1'700'000'000'000ms};
constexpr Jitter kNoJitter{0ms, 0ms};

MutexOwner owner(const char* id, milliseconds ttl_left, milliseconds transition_left) {
  return {id, kNow - 1s, kNow + ttl_left, kNow + transition_left, 7};
}

TEST(ContendPeriodTest, TheOwnerAsksAtTheEndOfItsTtl) {
  const ContendPeriod period{"me", Jitter{}};
  EXPECT_EQ(period.next_delay(owner("me", 5s, 7s), kNow, 12345), 5s);
}

TEST(ContendPeriodTest, TheOwnersDelayHasNoJitter) {
  const ContendPeriod period{"me", Jitter{}};
  for (std::uint64_t random = 0; random < 2000; ++random) {
    EXPECT_EQ(period.next_delay(owner("me", 5s, 7s), kNow, random), 5s);
  }
}

TEST(ContendPeriodTest, AnOwnerWhoseTtlIsUnknownAsksAtTheEndOfItsTransition) {
  const ContendPeriod period{"me", Jitter{}};
  MutexOwner me = owner("me", 5s, 7s);
  me.ttl_at.reset();
  EXPECT_EQ(period.next_delay(me, kNow, 0), 7s);
}

TEST(ContendPeriodTest, OthersAskAtTheEndOfTheTransition) {
  const ContendPeriod period{"me", kNoJitter};
  EXPECT_EQ(period.next_delay(owner("other", 5s, 7s), kNow, 99), 7s);
}

TEST(ContendPeriodTest, TheJitterCoversItsRangeAndNothingElse) {
  const ContendPeriod period{"me", Jitter{}};
  std::mt19937_64 random{1};
  milliseconds smallest = 1h, largest = -1h;
  for (int i = 0; i < 100'000; ++i) {
    const milliseconds jitter = period.next_delay(owner("other", 5s, 7s), kNow, random()) - 7s;
    smallest = std::min(smallest, jitter);
    largest = std::max(largest, jitter);
  }
  EXPECT_EQ(smallest, -200ms);
  EXPECT_EQ(largest, 999ms);
}

TEST(ContendPeriodTest, WithoutATransitionNobodyAsksEarly) {
  const ContendPeriod period{"me", Jitter{}};
  std::mt19937_64 random{1};
  milliseconds smallest = 1h, largest = -1h;
  for (int i = 0; i < 100'000; ++i) {
    const milliseconds jitter = period.next_delay(owner("other", 5s, 5s), kNow, random()) - 5s;
    smallest = std::min(smallest, jitter);
    largest = std::max(largest, jitter);
  }
  EXPECT_EQ(smallest, 0ms);
  EXPECT_EQ(largest, 999ms);
}

TEST(ContendPeriodTest, TheRangeOfTheJitterIsAnOption) {
  const ContendPeriod period{"me", Jitter{30ms, 33ms}};
  for (std::uint64_t random = 0; random < 100; ++random) {
    const milliseconds delay = period.next_delay(owner("other", 5s, 7s), kNow, random);
    EXPECT_GE(delay, 7030ms);
    EXPECT_LT(delay, 7033ms);
  }
}

TEST(ContendPeriodTest, AMomentThatHasPassedIsNegativeUnlessEnsured) {
  const ContendPeriod period{"me", kNoJitter};
  EXPECT_EQ(period.next_delay(owner("other", -5s, -2s), kNow, 0), -2s);
  EXPECT_EQ(period.ensure_next_delay(owner("other", -5s, -2s), kNow, 0), 0ms);
  EXPECT_EQ(period.next_delay(owner("me", -5s, 2s), kNow, 0), -5s);
  EXPECT_EQ(period.ensure_next_delay(owner("me", -5s, 2s), kNow, 0), 0ms);
}

TEST(ContendPeriodTest, TimesAtTheEndsOfTheirRangeAreAYearApart) {
  const ContendPeriod period{"me", kNoJitter};
  MutexOwner far = owner("other", 5s, 7s);
  far.transition_at = StoreTime::max();
  EXPECT_EQ(period.next_delay(far, StoreTime::min(), 0), 365 * 24h);
  far.transition_at = StoreTime::min();
  EXPECT_EQ(period.next_delay(far, StoreTime::max(), 0), -365 * 24h);
}

TEST(ContendPeriodTest, NobodyIsNotTheContenderWithTheEmptyId) {
  const ContendPeriod period{"", kNoJitter};
  EXPECT_EQ(period.next_delay(owner("", 5s, 7s), kNow, 0), 7s);  // evicted: the lease stays
}

TEST(ContendPeriodTest, TheWaitersHalfIsTheSame) {
  const ContendPeriod period{"me", Jitter{}};
  for (const std::uint64_t random :
       {std::uint64_t{0}, std::uint64_t{777}, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(ContendPeriod::contender_delay(owner("other", 5s, 7s), kNow, Jitter{}, random),
              period.next_delay(owner("other", 5s, 7s), kNow, random));
  }
}

}  // namespace
}  // namespace simba
