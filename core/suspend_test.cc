#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "core/api_fixture.h"
#include "simba/scheduler.h"

namespace {

// How long this machine has slept: seen by the boot clock alone.
std::atomic<std::time_t> suspended{0};

}  // namespace

// Stands in front of the C library's, for all that this program reads.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_BOOTTIME) now->tv_sec += suspended;
  return result;
}

namespace simba {
namespace {

using SuspendTest = ApiTest;

TEST_F(SuspendTest, WorkThatFellDueDuringSuspendRunsSoonAfterIt) {
  ContendOptions options = long_lease();
  options.ttl = std::chrono::hours{12};
  Scheduler scheduler(
      Client{store, with(options)}, "m", ScheduleConfig::rate(0ms, std::chrono::hours{1}),
      [](const Term&) {}, options);
  scheduler.start();
  ASSERT_TRUE(eventually([&] { return scheduler.runs() == 1; }));
  suspended = 3600;
  EXPECT_TRUE(eventually([&] { return scheduler.runs() == 2; }));
  suspended = 0;
  EXPECT_TRUE(scheduler.stop());
}

}  // namespace
}  // namespace simba
