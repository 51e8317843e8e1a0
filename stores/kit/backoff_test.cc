#include "stores/kit/backoff.h"

#include <gtest/gtest.h>

#include <chrono>

namespace simba::kit {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, DoublesUpToTheLimitAndBeginsAgain) {
  Backoff backoff(50ms, 300ms);
  EXPECT_EQ(backoff.next(0), 50ms);
  EXPECT_EQ(backoff.next(0), 100ms);
  EXPECT_EQ(backoff.next(0), 200ms);
  EXPECT_EQ(backoff.next(0), 300ms);
  EXPECT_EQ(backoff.next(0), 300ms);
  backoff.reset();
  EXPECT_EQ(backoff.next(0), 50ms);
}

TEST(BackoffTest, IsBetweenHalfAndAll) {
  for (std::uint64_t random : {1ULL, 12'345ULL, 25'000'000ULL, ~0ULL}) {
    const nanoseconds pause = Backoff(50ms, 300ms).next(random);
    EXPECT_GE(pause, 25ms);
    EXPECT_LE(pause, 50ms);
  }
}

}  // namespace
}  // namespace simba::kit
