// A file that is replaced while calls come in between of one another.
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "stores/sqlite/sqlite_fixture.h"
#include "testing/gaps.h"

namespace {
std::function<void()> in_the_wait;  // once, by who waits for the lock of a file
}

// In place of the C library's: who waits for the lock gives the processor away first.
extern "C" int sched_yield() noexcept {
  if (auto once = std::exchange(in_the_wait, nullptr)) once();
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace simba::sqlite {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::Not;
using ::testing::StartsWith;

std::string content_of(const fs::path& file) {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return all.str();
}

class SqliteReplaced : public SqliteTest {
 protected:
  // The error of a call that waited for the lock of the file while what is named was moved away.
  std::string moved_away_in_the_wait(const char* suffix, const std::function<void(Store&)>& call) {
    const auto store = open_store();
    take(*store, "kept", "a~1");
    sqlite3* other = nullptr;
    sqlite3_open(file.c_str(), &other);
    sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    const fs::path moved = file.string() + suffix, away = directory / "away";
    in_the_wait = [&] {
      fs::rename(moved, away);
      sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
    };
    const fs::path log = file.string() + "-wal";
    const std::string before = content_of(log);
    std::string error = error_of([&] { call(*store); });
    if (in_the_wait) error = "it did not wait";
    fs::rename(away, moved);
    if (content_of(log) != before) error += ", but wrote";
    sqlite3_close(other);
    return error;
  }
};

// Of two calls that find it changed, one may give it up when others have opened it anew long ago.
TEST_F(SqliteReplaced, WhichWasOpenedAnewIsNotGivenUpForWhatItWasBefore) {
  int places = 1, in_time = 0;
  for (int place = 0; place < places; ++place) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "before lock " + std::to_string(place));
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
    const auto store = open_store();
    take(*store, "report", "a~1");
    fs::remove(file.string() + "-shm");
    Token token = 0;
    const auto take_anew = [&] {
      const Claim claim{"invoice", "b~1", 0, 0, 10s, 6s};
      token = observed(store->contend({&claim, 1}, local_now() + 20ms).at(0)).owner.token;
    };
    {
      const testing::Gaps gaps([&](int at) {
        for (int i = 0; i < 3 && at == place && token == 0; ++i) error_of(take_anew);
      });
      error_of([&] { observe(*store, "report"); });
      places = std::max(places, gaps.count());
    }
    if (token == 0) continue;
    ++in_time;
    EXPECT_EQ(error_of([&] { renew(*store, "invoice", "b~1", token); }), "none");
  }
  EXPECT_GT(in_time, 2) << "no locks pass by: is it linked with --wrap?";
}

// Others may have written to the same log meanwhile, at the same place.
TEST_F(SqliteReplaced, WhileACallWaitedForItsLockIsNotWrittenTo) {
  const std::vector<Claim> two{{"report", "a~1", 0, 0, 10s, 6s}, {"order", "a~1", 0, 0, 10s, 6s}};
  const std::vector<std::function<void(Store&)>> calls{
      [](Store& store) { take(store, "report", "a~1"); },
      [](Store& store) { release(store, "kept", "a~1"); },
      [&](Store& store) { store.contend(two, soon()); },
      [&](Store& store) { store.release(two, soon()); },
      [](Store& store) { store.evict("kept", "a~1", 1, Eviction::kFreeNow, soon()); }};
  for (const char* suffix : {"", "-wal", "-shm"}) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const ::testing::ScopedTrace trace(__FILE__, __LINE__, suffix + std::to_string(i));
      const std::string error = moved_away_in_the_wait(suffix, calls[i]);
      EXPECT_THAT(error, StartsWith("the store was replaced"));
      EXPECT_THAT(error, Not(EndsWith("but wrote")));
    }
  }
}

}  // namespace
}  // namespace simba::sqlite
