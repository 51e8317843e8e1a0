#include "cli/restart_delay.h"

#include <gtest/gtest.h>

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

TEST(RestartDelayTest, DoublesUpToHalfAMinute) {
  EXPECT_EQ(restart_delay(1s, 1), 1s);
  EXPECT_EQ(restart_delay(1s, 2), 2s);
  EXPECT_EQ(restart_delay(1s, 5), 16s);
  EXPECT_EQ(restart_delay(1s, 6), 30s);
  EXPECT_EQ(restart_delay(1s, 7), 30s);
  EXPECT_EQ(restart_delay(1s, 4'000'000'000), 30s) << "a program that fails for years";
  EXPECT_EQ(restart_delay(20s, 2), 30s);
}

TEST(RestartDelayTest, NoFailureIsTheFirstDelay) { EXPECT_EQ(restart_delay(5s, 0), 5s); }

TEST(RestartDelayTest, WhoWantsLongerGetsIt) {
  EXPECT_EQ(restart_delay(10min, 1), 10min);
  EXPECT_EQ(restart_delay(10min, 9), 10min);
}

TEST(RestartDelayTest, NoDelayStaysNone) { EXPECT_EQ(restart_delay(0s, 40), 0s); }

}  // namespace
}  // namespace simba::cli
