#include "core/bell.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace simba::core {
namespace {

using namespace std::chrono_literals;

constexpr Bell::Clock::time_point kForever = Bell::Clock::time_point::max();

bool is_readable(int descriptor, int patience_ms) {
  pollfd source{descriptor, POLLIN, 0};
  return poll(&source, 1, patience_ms) == 1;
}

TEST(BellTest, ARingReachesWhoListensElsewhere) {
  Bell bell;
  std::atomic<int> rung{0}, heard{0};
  std::thread ringer([&] {
    for (int round = 1; round <= 100; ++round) {
      rung = round;
      bell.ring();
      while (heard < round) std::this_thread::yield();
    }
  });
  for (int round = 1; round <= 100; ++round) {
    EXPECT_TRUE(bell.wait(
        kForever, [&] { return rung == round; },
        [&](int interrupt) { return is_readable(interrupt, -1); }));
    heard = round;
  }
  ringer.join();
}

TEST(BellTest, ARingIsNoInterruptForTheNextWait) {
  Bell bell;
  bool done = false;
  const auto ring = [&] {
    done = true;
    bell.ring();
  };
  EXPECT_TRUE(bell.wait(
      kForever, [&] { return done; },
      [&](int) {
        std::thread(ring).join();
        return true;
      }));
  bool was_readable = true;
  done = false;
  EXPECT_TRUE(bell.wait(
      kForever, [&] { return done; },
      [&](int interrupt) {
        was_readable = is_readable(interrupt, 0);
        return done = true;
      }));
  EXPECT_FALSE(was_readable);
}

TEST(BellTest, WhoRingsWhileItListensInterruptsNobody) {
  Bell bell;
  bool done = false, was_readable = true;
  EXPECT_TRUE(bell.wait(
      kForever, [&] { return done; },
      [&](int interrupt) {
        bell.ring();
        was_readable = is_readable(interrupt, 0);
        return done = true;
      }));
  EXPECT_FALSE(was_readable);
}

TEST(BellTest, WhoCannotListenWaitsForTheRing) {
  Bell bell;
  std::atomic<bool> done{false};
  std::atomic<int> asked{0};
  std::thread ringer([&] {
    while (asked == 0) std::this_thread::yield();
    done = true;
    bell.ring();
  });
  EXPECT_TRUE(bell.wait(
      kForever, [&] { return done.load(); },
      [&](int) {
        ++asked;
        return false;
      }));
  EXPECT_EQ(asked, 1);
  ringer.join();
}

TEST(BellTest, TheEndOfPatienceEndsBothKindsOfWaiting) {
  Bell bell;
  const auto never = [] { return false; };
  EXPECT_FALSE(bell.wait(Bell::Clock::now() + 1ms, never, [](int interrupt) {
    is_readable(interrupt, 2);
    return true;
  }));
  EXPECT_FALSE(bell.wait(Bell::Clock::now() + 1ms, never, [](int) { return false; }));
}

}  // namespace
}  // namespace simba::core
