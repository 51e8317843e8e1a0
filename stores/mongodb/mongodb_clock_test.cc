#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "stores/mongodb/mongodb_fixture.h"

namespace {

std::atomic<long> shift{0};  // seconds

}  // namespace

// The wall clock of this program, the driver's too, is off.
extern "C" int clock_gettime(clockid_t which, timespec* now) noexcept {
  const long done = ::syscall(SYS_clock_gettime, which, now);
  if (which == CLOCK_REALTIME) now->tv_sec += shift;
  return static_cast<int>(done);
}
extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1'000;
  return 0;
}
extern "C" time_t time(time_t* into) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

namespace simba::mongodb {
namespace {

class MongodbClockTest : public MongodbTest {
 protected:
  ~MongodbClockTest() override { shift = 0; }
};

TEST_F(MongodbClockTest, AClientWhoseClockIsAnHourOffIsLikeAnyOther) {
  for (const long off : {3'600L, -3'600L}) {
    const std::string mutex = "off" + std::to_string(off);
    shift = 0;
    const auto honest = open();
    const Observation held = take(*honest, mutex, "honest~1");
    shift = off;
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto apart = std::chrono::abs(wall - held.now.time_since_epoch());
    ASSERT_GT(apart, 50min) << "the clock is not off";
    const auto store = open("appName=off");
    const Observation seen = take(*store, mutex, "off~1");
    EXPECT_EQ(seen.owner.id, "honest~1") << "a lease that runs is not over for anybody";
    EXPECT_LT(std::chrono::abs(seen.now - held.now), 1min);
    release(*honest, mutex, "honest~1");
    const Observation mine = take(*store, mutex, "off~1");
    EXPECT_EQ(mine.owner.id, "off~1");
    EXPECT_EQ(mine.owner.transition_at - mine.now, 30s);
    EXPECT_LT(std::chrono::abs(mine.now - held.now), 1min) << "no wall clock of ours is written";
    EXPECT_GT(mine.owner.token, held.owner.token);
    const Observation renewed = renew(*store, mutex, "off~1", mine.owner.token);
    EXPECT_EQ(renewed.owner.id, "off~1");
    EXPECT_LT(std::chrono::abs(renewed.owner.transition_at - held.now), 2min);
  }
}

}  // namespace
}  // namespace simba::mongodb
