#include <sqlite3.h>

#include <thread>

#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

constexpr std::uintmax_t kFrame = 1'024 + 24;  // a page and what is said of it

class LogKeeperTest : public SqliteTest {
 protected:
  std::uintmax_t log_size() const { return std::filesystem::file_size(file.string() + "-wal"); }
  std::uintmax_t frames() const { return log_size() / kFrame; }
  static void take_and_release(Store& store, int times) {
    for (int i = 0; i < times; ++i) {
      take(store, "report", "a~1");
      release(store, "report", "a~1");
    }
  }
};

TEST_F(LogKeeperTest, KeepsTheLogShortThroughManyShortLives) {
  std::uintmax_t longest = 0;
  int emptied = 0;
  for (int i = 0; i < 300; ++i) {
    take_and_release(*open_store(), 1);
    longest = std::max(longest, frames());
    if (log_size() == 0) ++emptied;
  }
  EXPECT_LT(longest, 104U);
  EXPECT_GT(emptied, 3);  // and the other times no disk was waited for
  EXPECT_LT(emptied, 8);
}

TEST_F(LogKeeperTest, DoesNotEmptyTheLogAfterTheFirstCommit) {
  take_and_release(*open_store(), 60);
  const auto store = open_store();
  const std::uintmax_t before = log_size();
  take(*store, "report", "a~1");
  EXPECT_GT(log_size(), before);
  release(*store, "report", "a~1");
  EXPECT_EQ(log_size(), 0U);
}

TEST_F(LogKeeperTest, KeepsTheLogOfALongLifeWithinAThousandFrames) {
  const auto store = open_store();
  take_and_release(*store, 2'000);
  EXPECT_LT(frames(), 1'010U);
}

TEST_F(LogKeeperTest, EmptiesTheLogAlsoWhileOthersNeverCeaseToReadIt) {
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    const auto store = open_store();
    while (!stop) observe(*store, "report");
  });
  const auto store = open_store();
  for (int round = 0; round < 20; ++round) {
    take_and_release(*store, 500);
    // A reader that stands still, which happens to threads too, is waited for.
    const LocalTime until = BootClock::now() + 30s;
    while (frames() >= 6'100U && BootClock::now() < until) take_and_release(*store, 10);
    EXPECT_LT(frames(), 6'100U) << round;
  }
  stop = true;
  reader.join();
}

// A reader that was stopped holds what it reads in place; everybody else goes on.
TEST_F(LogKeeperTest, GoesOnWhereTheLogCannotBeEmptied) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  sqlite3* stopped = nullptr;
  ASSERT_EQ(sqlite3_open_v2(file.c_str(), &stopped, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(stopped, "BEGIN; SELECT * FROM simba_mutex", nullptr, nullptr, nullptr),
            SQLITE_OK);
  release(*store, "report", "a~1");
  take_and_release(*store, 2'500);
  EXPECT_GT(frames(), 5'000U);
  EXPECT_TRUE(observe(*store, "report").is_free());
  sqlite3_close(stopped);
  take_and_release(*store, 600);
  EXPECT_LT(frames(), 6'000U);  // cut to 4 MiB, or empty
}

}  // namespace
}  // namespace simba::sqlite
