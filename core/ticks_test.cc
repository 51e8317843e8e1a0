#include "core/ticks.h"

#include <gtest/gtest.h>

namespace simba::core {
namespace {

using namespace std::chrono_literals;

constexpr LocalTime kStart{1h};

TEST(TicksTest, TheFirstRunIsDueAfterTheInitialDelay) {
  EXPECT_EQ(Ticks(ScheduleConfig::rate(5s, 1s), kStart).next(), kStart + 5s);
  EXPECT_EQ(Ticks(ScheduleConfig::delay(0s, 1s), kStart).next(), kStart);
}

TEST(TicksTest, AFixedRateKeepsItsBeat) {
  Ticks ticks(ScheduleConfig::rate(0s, 10s), kStart);
  EXPECT_EQ(ticks.ran(kStart + 3s), 0u);
  EXPECT_EQ(ticks.next(), kStart + 10s);
  EXPECT_EQ(ticks.ran(kStart + 19s), 0u) << "a run that began late ended before the next tick";
  EXPECT_EQ(ticks.next(), kStart + 20s);
}

TEST(TicksTest, AFixedDelayCountsFromTheEndOfTheRun) {
  Ticks ticks(ScheduleConfig::delay(0s, 10s), kStart);
  EXPECT_EQ(ticks.ran(kStart + 35s), 0u);
  EXPECT_EQ(ticks.next(), kStart + 45s);
}

TEST(TicksTest, ALateRunStartsAtOnceAndWhatWasMissedIsSkippedAndCounted) {
  Ticks ticks(ScheduleConfig::rate(0s, 10s), kStart);
  EXPECT_EQ(ticks.ran(kStart + 35s), 2u) << "the ticks at 10 and 20; that at 30 runs late";
  EXPECT_LE(ticks.next(), kStart + 35s) << "at once";
  EXPECT_EQ(ticks.ran(kStart + 36s), 0u);
  EXPECT_EQ(ticks.next(), kStart + 40s) << "back on the beat";
}

TEST(TicksTest, ARunThatEndsOnATickMissesNothing) {
  Ticks ticks(ScheduleConfig::rate(0s, 10s), kStart);
  EXPECT_EQ(ticks.ran(kStart + 10s), 0u);
  EXPECT_EQ(ticks.next(), kStart + 10s);
}

TEST(TicksTest, CatchingUpRunsEveryTick) {
  ScheduleConfig config = ScheduleConfig::rate(0s, 10s);
  config.missed = ScheduleConfig::Missed::kCatchUp;
  Ticks ticks(config, kStart);
  EXPECT_EQ(ticks.ran(kStart + 35s), 0u);
  for (const auto due : {10s, 20s, 30s}) {
    EXPECT_EQ(ticks.next(), kStart + due);
    EXPECT_EQ(ticks.ran(kStart + 36s), 0u);
  }
  EXPECT_EQ(ticks.next(), kStart + 40s);
}

TEST(TicksTest, AVeryLongRunDoesNotOverflow) {
  Ticks ticks(ScheduleConfig::rate(0ms, 1ms), kStart);
  EXPECT_EQ(ticks.ran(kStart + 24h * 365), 365ULL * 24 * 3600 * 1000 - 1);
  EXPECT_EQ(ticks.next(), kStart + 24h * 365);
}

}  // namespace
}  // namespace simba::core
