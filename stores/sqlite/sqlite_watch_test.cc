#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <thread>

#include "stores/sqlite/sqlite_fixture.h"

namespace {
bool is_inotify_used_up = false;
}

// In place of the C library's. The limits themselves are of no use here: that of instances is
// shared with all tests that run now, and without descriptors the sanitizers cannot work.
extern "C" int inotify_init1(int flags) noexcept {
  if (!is_inotify_used_up) return static_cast<int>(syscall(SYS_inotify_init1, flags));
  errno = EMFILE;
  return -1;
}

namespace simba::sqlite {
namespace {

class SqliteWatch : public SqliteTest {};

TEST_F(SqliteWatch, HearsAReleaseOfTheSameStoreBeforeItReturns) {
  const auto store = open_store();
  Hints hints;
  Hints others;
  const auto watch = store->watch("report", "", hints.wake());
  const auto other = store->watch("something else", "", others.wake());
  ASSERT_NE(watch, nullptr);
  EXPECT_TRUE(watch->is_live());
  take(*store, "report", "a~1");
  EXPECT_EQ(hints.count(), 0);
  release(*store, "report", "a~1");
  EXPECT_GE(hints.count(), 1);
  EXPECT_EQ(others.count(), 0);
}

TEST_F(SqliteWatch, HearsAnEviction) {
  const auto store = open_store();
  Hints hints;
  const auto watch = store->watch("report", "", hints.wake());
  const Token token = take(*store, "report", "a~1").owner.token;
  store->evict("report", "a~1", token, Eviction::kKeepLease, soon());
  EXPECT_GE(hints.count(), 1);
}

TEST_F(SqliteWatch, HearsNothingOfAReleaseThatChangedNothing) {
  const auto store = open_store();
  Hints hints;
  const auto watch = store->watch("report", "", hints.wake());
  take(*store, "report", "a~1");
  release(*store, "report", "b~1");
  EXPECT_EQ(hints.count(), 0);
}

TEST_F(SqliteWatch, HearsAReleaseOfAnotherStoreByTheBell) {
  const auto mine = open_store();
  const auto other = open_store();
  Hints hints;
  const auto watch = mine->watch("report", "", hints.wake());
  take(*other, "report", "a~1");
  release(*other, "report", "a~1");
  EXPECT_TRUE(hints.wait_for(1));
}

TEST_F(SqliteWatch, IsNotCalledAfterItWasDestroyed) {
  const auto mine = open_store();
  const auto other = open_store();
  take(*other, "report", "a~1");
  std::atomic<bool> stop{false};
  std::thread releaser([&] {
    while (!stop) {
      take(*other, "report", "a~1");
      release(*other, "report", "a~1");
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    auto watch = mine->watch("report", "", [&alive] { alive->fetch_add(1); });
    if (i % 4 == 0) {
      while (*alive == 0) std::this_thread::yield();
    }
    watch.reset();
    alive.reset();  // a late call would write here
  }
  stop = true;
  releaser.join();
}

TEST_F(SqliteWatch, MayReleaseFromInsideAHint) {
  const auto store = open_store();
  take(*store, "a", "x~1");
  take(*store, "b", "x~2");
  const auto watch = store->watch("a", "", [&] { release(*store, "b", "x~2"); });
  release(*store, "a", "x~1");
  EXPECT_TRUE(observe(*store, "b").is_free());
}

TEST_F(SqliteWatch, OutlivesTheStore) {
  Hints hints;
  auto store = open_store();
  auto watch = store->watch("report", "", hints.wake());
  store.reset();
  watch.reset();
}

TEST_F(SqliteWatch, SaysWhenItsBellWasDeletedAndHangsItAgainForTheNextWatch) {
  const auto mine = open_store();
  Hints hints;
  const auto watch = mine->watch("report", "", hints.wake());
  const auto bell = Bells::file(file.string() + "-bell", Bells::of("report"));
  std::filesystem::last_write_time(bell, std::filesystem::file_time_type::clock::now());
  ASSERT_TRUE(hints.wait_for(1));  // a touched bell is still the bell
  EXPECT_TRUE(watch->is_live());
  ASSERT_TRUE(std::filesystem::remove(bell));
  while (watch->is_live()) std::this_thread::yield();
  const auto next = mine->watch("report", "", hints.wake());
  EXPECT_TRUE(watch->is_live());
  const auto other = open_store();
  const int before = hints.count();
  take(*other, "report", "a~1");
  release(*other, "report", "a~1");
  while (hints.count() == before) std::this_thread::yield();
}

TEST_F(SqliteWatch, IsRungByWhoKnewTheBellThatHungThereBefore) {
  const auto mine = open_store();
  const auto other = open_store();
  Hints hints;
  auto watch = mine->watch("report", "", hints.wake());
  const auto ring = [&] {
    take(*other, "report", "a~1");
    release(*other, "report", "a~1");
  };
  ring();
  ASSERT_TRUE(hints.wait_for(1));
  ASSERT_TRUE(std::filesystem::remove(Bells::file(file.string() + "-bell", Bells::of("report"))));
  while (watch->is_live()) std::this_thread::yield();
  watch = mine->watch("report", "", hints.wake());
  ASSERT_TRUE(watch->is_live());
  const int before = hints.count();
  ring();
  EXPECT_TRUE(hints.wait_for(before + 1));
}

// With it goes what says which bells are waited for.
TEST_F(SqliteWatch, SaysWhenWaitedWasDeletedAndIsHeardOfAgainWithTheNextWatch) {
  const auto mine = open_store();
  const auto other = open_store();
  Hints hints, others;
  const auto watch = mine->watch("report", "", hints.wake());
  const auto deaf = mine->watch("order", "", others.wake());
  ASSERT_TRUE(std::filesystem::remove(Bells::waited(file.string() + "-bell")));
  ASSERT_TRUE(hints.wait_for(1));
  ASSERT_TRUE(others.wait_for(1));
  EXPECT_FALSE(watch->is_live());
  const auto next = mine->watch("report", "", [] {});
  EXPECT_TRUE(watch->is_live());
  EXPECT_FALSE(deaf->is_live());
  const auto late = open_store();
  for (const auto& store : {other, late}) {
    const int before = hints.count();
    take(*store, "report", "a~1");
    release(*store, "report", "a~1");
    EXPECT_TRUE(hints.wait_for(before + 1));
  }
}

// Who had it open cannot see in the old file that somebody waits by the new one.
TEST_F(SqliteWatch, IsRungByWhoKnewOnlyTheFileOfMarksThatWasDeleted) {
  const auto mine = open_store();
  const auto other = open_store();
  Hints hints;
  for (const char* gone : {"waited", ""}) {
    const Token token = take(*other, "report", "a~1").owner.token;
    // Until the times of the directory are old enough to be trusted.
    for (const LocalTime end = local_now() + 60ms; local_now() < end;) {
      renew(*other, "report", "a~1", token);
    }
    std::filesystem::remove_all(std::filesystem::path(file.string() + "-bell") / gone);
    const auto watch = mine->watch("report", "", hints.wake());
    ASSERT_TRUE(watch->is_live());
    const int before = hints.count();
    release(*other, "report", "a~1");
    EXPECT_TRUE(hints.wait_for(before + 1)) << "without " << gone;
  }
}

TEST_F(SqliteWatch, OfAnotherBellNoticesThatWaitedWasDeletedAndWakesThisOne) {
  const auto mine = open_store();
  Hints hints;
  const auto watch = mine->watch("report", "", hints.wake());
  watch->need_reader(false);
  const int interrupt = eventfd(1, EFD_CLOEXEC);
  ASSERT_TRUE(watch->listen(interrupt, local_now()));  // from here on the reader stands aside
  std::filesystem::remove(Bells::waited(file.string() + "-bell"));
  const auto another = mine->watch("order", "", [] {});
  EXPECT_TRUE(another->is_live());
  EXPECT_TRUE(hints.wait_for(1));
  EXPECT_FALSE(watch->is_live());
  close(interrupt);
}

TEST_F(SqliteWatch, GoesOnWithTheNewFileAfterAReplacement) {
  const auto mine = open_store();
  Hints hints;
  const auto watch = mine->watch("report", "", hints.wake());
  for (const char* suffix : {"", "-wal", "-shm", "-bell"}) {
    std::filesystem::remove_all(file.string() + suffix);
  }
  EXPECT_NE(error_of([&] { observe(*mine, "report"); }), "none");
  EXPECT_TRUE(observe(*mine, "report").is_free());
  ASSERT_TRUE(hints.wait_for(1));
  const int before = hints.count();
  const auto other = open_store();
  take(*other, "report", "a~1");
  release(*other, "report", "a~1");
  while (hints.count() == before) std::this_thread::yield();
}

TEST_F(SqliteWatch, IsNullWhereNoNotificationCanBeHad) {
  const std::string answer = in_child([&]() -> std::string {
    const auto store = open_store();
    take(*store, "report", "a~1");
    is_inotify_used_up = true;
    return store->watch("report", "", [] {}) == nullptr ? "null" : "a watch";
  });
  EXPECT_EQ(answer, "null");
}

TEST_F(SqliteWatch, WakesAWaiterInAnotherProcess) {
  Signal owned;
  Signal go;
  Child owner([&] {
    const auto store = open_store();
    take(*store, "report", "a~1");
    owned.give();
    go.wait();
    release(*store, "report", "a~1");
  });
  owned.wait();
  const auto store = open_store();
  Hints hints;
  const auto watch = store->watch("report", "", hints.wake());
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "a~1");
  go.give();
  ASSERT_TRUE(hints.wait_for(1));
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "b~1");
}

}  // namespace
}  // namespace simba::sqlite
