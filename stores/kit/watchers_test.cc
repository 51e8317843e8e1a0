#include "stores/kit/watchers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace simba::kit {
namespace {

using namespace std::chrono_literals;

class WatchersTest : public ::testing::Test {
 protected:
  std::unique_ptr<Watch> watch(const char* mutex, std::function<void()> wake) {
    return Watchers::add(watchers, mutex, std::move(wake));
  }
  std::shared_ptr<Watchers> watchers = std::make_shared<Watchers>();
};

TEST_F(WatchersTest, AHintReachesAllWhoWatchTheMutexAndNobodyElse) {
  int first = 0, second = 0, other = 0;
  const auto a = watch("report", [&] { ++first; });
  const auto b = watch("report", [&] { ++second; });
  const auto c = watch("reports", [&] { ++other; });
  watchers->wake("report");
  watchers->wake("nothing");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(other, 0);
}

TEST_F(WatchersTest, AHintForAllReachesAll) {
  int hints = 0;
  const auto a = watch("a", [&] { ++hints; });
  const auto b = watch("b", [&] { ++hints; });
  watchers->wake_all();
  EXPECT_EQ(hints, 2);
}

TEST_F(WatchersTest, AWatchThatEndedHearsNothing) {
  int hints = 0;
  auto ended = watch("report", [&] { ++hints; });
  ended.reset();
  watchers->wake("report");
  watchers->wake_all();
  EXPECT_EQ(hints, 0);
}

TEST_F(WatchersTest, TheEndOfOneWatchLeavesTheOthers) {
  int hints = 0;
  auto first = watch("report", [] {});
  const auto second = watch("report", [&] { ++hints; });
  first.reset();
  watchers->wake("report");
  EXPECT_EQ(hints, 1);
}

TEST_F(WatchersTest, AHintMayAddAWatch) {
  std::unique_ptr<Watch> added;
  int hints = 0;
  const auto first = watch("report", [&] {
    if (!added) added = watch("report", [&] { ++hints; });
  });
  watchers->wake("report");
  EXPECT_EQ(hints, 0);
  watchers->wake("report");
  EXPECT_EQ(hints, 1);
}

TEST_F(WatchersTest, AHintMayEndAnotherWatch) {
  int hints = 0;
  auto victim = watch("b", [&] { ++hints; });
  const auto first = watch("a", [&] { victim.reset(); });
  watchers->wake_all();
  watchers->wake_all();
  EXPECT_LE(hints, 1);
}

TEST_F(WatchersTest, AWatchKeepsTheWatchersAlive) {
  auto kept = watch("report", [] {});
  const std::weak_ptr<Watchers> weak = watchers;
  watchers.reset();
  EXPECT_FALSE(weak.expired());
  kept.reset();
  EXPECT_TRUE(weak.expired());
}

TEST_F(WatchersTest, TheEndOfAWatchWaitsForTheHintThatRuns) {
  std::promise<void> begun, release;
  std::atomic<bool> returned{false};
  auto watched = watch("report", [&] {
    begun.set_value();
    release.get_future().wait();
    returned = true;
  });
  std::jthread waker([&] { watchers->wake("report"); });
  begun.get_future().wait();
  std::atomic<bool> ended{false};
  std::jthread ender([&] {
    watched.reset();
    EXPECT_TRUE(returned);
    ended = true;
  });
  EXPECT_FALSE(ended);
  release.set_value();
  ender.join();
  EXPECT_TRUE(ended);
}

TEST_F(WatchersTest, AfterTheEndOfAWatchNoHintRunsWhateverOthersDo) {
  std::atomic<bool> over{false};
  std::vector<std::jthread> wakers;
  for (int t = 0; t < 2; ++t) {
    wakers.emplace_back([&] {
      while (!over) {
        watchers->wake("report");
        watchers->wake_all();
      }
    });
  }
  for (int i = 0; i < 3000; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    auto watched = watch("report", [&flag = *alive] { EXPECT_TRUE(flag); });
    if (i % 3 == 0) std::this_thread::yield();
    watched.reset();
    *alive = false;
    alive.reset();  // a hint after this would touch freed memory
  }
  over = true;
}

}  // namespace
}  // namespace simba::kit
