// A client whose wall clock is wrong, by an hour and either way: to every store it is a client like
// any other.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "simba/connect.h"
#include "stores/kit/fixture.h"
#include "testing/servers/directory.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace {

std::atomic<long> shift{0};  // seconds

}  // namespace

// The wall clock of this program, the drivers' too, is off.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's are reserved
// names
extern "C" int clock_gettime(clockid_t which, timespec* now) noexcept {
  const long done = ::syscall(SYS_clock_gettime, which, now);
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) now->tv_sec += shift;
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
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace simba {
namespace {

using namespace kit::fixture;  // NOLINT(google-build-using-namespace): for tests alone
using std::chrono::abs;

class ClockTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      honest = open_store(url());
      other = open_store(url());
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();  // this build has no such store
    }
  }
  void TearDown() override { shift = 0; }

  static Observation take(Store& store, std::string_view mutex, std::string_view id) {
    return observed(contend(store, {mutex, id, 0, 0, 60s, 30s}));
  }

  std::shared_ptr<Store> honest, other;

 private:
  std::string url() {
    if (GetParam() == "sqlite") return "sqlite:" + (directory_.path() / "clock.db").string();
    if (!server_) server_.emplace(GetParam());
    return server_->url();
  }

  servers::Directory directory_;
  std::optional<servers::TestServer> server_;
};

TEST_P(ClockTest, AClientWhoseClockIsAnHourOffIsLikeAnyOther) {
  for (const long off : {3'600L, -3'600L}) {
    const std::string mutex =
        "clock-" + std::to_string(off) + '-' + std::to_string(std::random_device{}());
    const Observation held = take(*honest, mutex, "honest~1");
    ASSERT_EQ(held.owner.id, "honest~1");
    const auto wall = std::chrono::system_clock::now();
    shift = off;
    ASSERT_GT(abs(std::chrono::system_clock::now() - wall), 50min) << "the clock is not off";
    const Observation seen = take(*other, mutex, "off~1");
    EXPECT_EQ(seen.owner.id, "honest~1") << "a lease that runs is not over for anybody";
    EXPECT_LT(abs(seen.now - held.now), 1min);
    shift = 0;
    release(*honest, mutex, "honest~1");
    shift = off;
    const Observation mine = take(*other, mutex, "off~1");
    EXPECT_EQ(mine.owner.id, "off~1");
    EXPECT_FALSE(mine.is_free());
    EXPECT_LT(mine.owner.transition_at - mine.now, 2min) << "no wall clock of ours is written";
    EXPECT_LT(abs(mine.now - held.now), 1min);
    EXPECT_GT(mine.owner.token, held.owner.token);
    // Renewed by a clock that has jumped since.
    shift = -off;
    const Observation renewed = renew(*other, mutex, "off~1", mine.owner.token, 60s, 30s);
    EXPECT_EQ(renewed.owner.id, "off~1");
    shift = 0;
    const Observation looked = observe(*honest, mutex);
    EXPECT_EQ(looked.owner.id, "off~1");
    EXPECT_EQ(looked.owner.token, mine.owner.token);
    EXPECT_FALSE(looked.is_free());
    EXPECT_LT(looked.owner.transition_at - looked.now, 2min);
    release(*other, mutex, "off~1");
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, ClockTest,
                         ::testing::Values("mariadb", "mongodb", "postgres", "redis", "sqlite",
                                           "zookeeper"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace simba
