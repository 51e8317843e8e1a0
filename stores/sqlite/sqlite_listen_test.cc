// The thread that waits listens to the bells itself, in place of the store's reader.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "stores/sqlite/bells.h"
#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

class SqliteListen : public SqliteTest {
 public:
  ~SqliteListen() override { ::close(interrupt_); }

 protected:
  // Another process would ring the same bell.
  void ring() {
    take(*other_, "report", "a~1");
    release(*other_, "report", "a~1");
  }
  bool listen(Watch& watch) {
    watch.need_reader(false);
    return watch.listen(interrupt_, local_now() + 1h);
  }
  // As a thread does that was listening and now has something else to do.
  void listen_and_leave(Watch& watch) {
    eventfd_write(interrupt_, 1);
    EXPECT_TRUE(listen(watch));
    eventfd_t rings = 0;
    eventfd_read(interrupt_, &rings);
  }

  const std::shared_ptr<Store> mine_ = open_store(), other_ = open_store();
  const int interrupt_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(SqliteListen, TheOneWhoWaitsHearsTheBellOnItsOwnThread) {
  Hints hints;
  const auto watch = mine_->watch("report", "", hints.wake());
  listen_and_leave(*watch);  // from here on the reader stands aside
  for (int round = 1; round <= 20; ++round) {
    ring();
    while (hints.count() < round) EXPECT_TRUE(listen(*watch));
    EXPECT_EQ(hints.on(), std::this_thread::get_id());
  }
}

TEST_F(SqliteListen, AnInterruptAndADeadlineEndIt) {
  Hints hints;
  const auto watch = mine_->watch("report", "", hints.wake());
  listen_and_leave(*watch);
  EXPECT_TRUE(watch->listen(interrupt_, local_now() + 1ms));
  EXPECT_EQ(hints.count(), 0);
}

TEST_F(SqliteListen, OfTwoWatchesNoneIsListenedToByItsOwnThread) {
  Hints hints, others;
  const auto watch = mine_->watch("report", "", hints.wake());
  const auto another = mine_->watch("something else", "", others.wake());
  EXPECT_FALSE(listen(*watch));
  ring();
  EXPECT_TRUE(hints.wait_for(1));
  EXPECT_NE(hints.on(), std::this_thread::get_id());
}

TEST_F(SqliteListen, AnotherWatchBringsTheReaderBack) {
  Hints hints, others;
  const auto watch = mine_->watch("something else", "", others.wake());
  listen_and_leave(*watch);
  const auto another = mine_->watch("report", "", hints.wake());
  ring();
  EXPECT_TRUE(hints.wait_for(1));
}

// A file under a lease cannot be opened, as on a disk that stands still.
TEST_F(SqliteListen, WhoSaysThatItNeedsTheReaderDoesNotWaitForABellToBeMade) {
  Hints hints, others;
  const auto watch = mine_->watch("report", "", hints.wake());
  std::string busy = "x";
  while (Bells::of(busy) == Bells::of("report")) busy += 'x';
  const std::filesystem::path bell = Bells::file(file.string() + "-bell", Bells::of(busy));
  std::signal(SIGIO, SIG_IGN);
  const int held = ::open(bell.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::fcntl(held, F_SETLEASE, F_WRLCK), 0);
  std::atomic<bool> made{false};
  std::jthread maker([&] {
    const auto another = mine_->watch(busy, "", others.wake());
    made = true;
  });
  while (::fcntl(held, F_GETLEASE) == F_WRLCK) std::this_thread::yield();  // it stands there
  watch->need_reader(false);
  watch->need_reader(true);
  EXPECT_FALSE(made);
  EXPECT_EQ(::fcntl(held, F_SETLEASE, F_UNLCK), 0);
  maker.join();
  ::close(held);
}

TEST_F(SqliteListen, WhatIsLeftToTheReaderTheReaderHears) {
  Hints hints;
  const auto watch = mine_->watch("report", "", hints.wake());
  listen_and_leave(*watch);
  ring();
  watch->need_reader(true);
  EXPECT_TRUE(hints.wait_for(1));
  EXPECT_NE(hints.on(), std::this_thread::get_id());
}

TEST_F(SqliteListen, AWatchNobodyNeedsJustNowIsInNobodysWay) {
  Hints hints;
  const auto idle = mine_->watch("something else", "", [] {});
  idle->need_reader(false);
  const auto watch = mine_->watch("report", "", hints.wake());
  listen_and_leave(*watch);
  ring();
  while (hints.count() == 0) EXPECT_TRUE(listen(*watch));
  EXPECT_EQ(hints.on(), std::this_thread::get_id());
}

TEST_F(SqliteListen, WhileOneThreadListensAnotherDoesNot) {
  Hints hints;
  const auto first = mine_->watch("something else", "", [] {});
  const auto second = mine_->watch("report", "", hints.wake());
  first->need_reader(false);
  second->need_reader(false);
  std::thread listener([&] {
    while (!first->listen(interrupt_, local_now() + 1h)) std::this_thread::yield();
  });
  // Until it listens we do, each time for a moment.
  while (second->listen(interrupt_, local_now())) std::this_thread::yield();
  eventfd_write(interrupt_, 1);
  listener.join();
}

TEST_F(SqliteListen, WhatAWakeThrowsEndsTheTurn) {
  const auto watch = mine_->watch("report", "", [] { throw std::runtime_error("odd"); });
  listen_and_leave(*watch);
  ring();
  EXPECT_THROW(listen(*watch), std::runtime_error);
  listen_and_leave(*watch);
}

TEST_F(SqliteListen, AWatchThatEndsLeavesTheNextOneAReader) {
  Hints hints;
  listen_and_leave(*mine_->watch("report", "", [] {}));
  const auto watch = mine_->watch("report", "", hints.wake());
  ring();
  EXPECT_TRUE(hints.wait_for(1));
}

}  // namespace
}  // namespace simba::sqlite
