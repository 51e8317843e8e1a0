#include "torture/run_queue.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

// Both of them on one processor, which they never give away by themselves.
void run_on_one_processor(const char* name, const std::atomic<bool>& ends) {
  pthread_setname_np(pthread_self(), name);
  cpu_set_t one;
  sched_getaffinity(0, sizeof one, &one);
  int first = 0;
  while (!CPU_ISSET(first, &one)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
  while (!ends) continue;
}

// Whether those who tell were seen to wait while two threads of these names share a processor.
bool is_seen_to_wait(const char* name, const char* other, LocalTime patience) {
  const RunQueue before = RunQueue::now();
  std::atomic<bool> ends{false};
  std::jthread first([&] { run_on_one_processor(name, ends); });
  std::jthread second([&] { run_on_one_processor(other, ends); });
  bool is_seen = false;
  while (!is_seen && BootClock::now() < patience) {
    std::this_thread::sleep_for(1ms);
    is_seen = RunQueue::now().since(before) >= 5ms;
  }
  ends = true;
  return is_seen;
}

bool is_told_by_the_kernel() { return std::ifstream("/proc/self/schedstat").is_open(); }

TEST(RunQueueTest, SaysHowLongThoseWhoTellWaitedForAProcessor) {
  if (!is_told_by_the_kernel()) GTEST_SKIP() << "this kernel has no schedstat";
  EXPECT_TRUE(is_seen_to_wait("simba-dispatch", "busy", BootClock::now() + 60s));
  EXPECT_TRUE(is_seen_to_wait("busy", "simba-revoke", BootClock::now() + 60s));
}

TEST(RunQueueTest, HowLongOthersWaitIsNoExcuse) {
  EXPECT_FALSE(is_seen_to_wait("busy", "simba-callback", BootClock::now() + 200ms));
}

TEST(RunQueueTest, OfThreadsThatAreGoneNothingIsSaid) {
  const RunQueue now = RunQueue::now();
  EXPECT_EQ(now.since(now), 0ns);
  EXPECT_EQ(now.since({}), RunQueue::now().since({})) << "nobody tells here";
}

}  // namespace
}  // namespace simba::torture
