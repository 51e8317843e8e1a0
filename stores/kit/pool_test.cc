#include "stores/kit/pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "simba/error.h"
#include "stores/kit/asleep.h"
#include "stores/kit/eventually.h"

namespace simba::kit {
namespace {

using namespace std::chrono_literals;

// A server that counts its connections and has only so many.
struct Server {
  std::atomic<int> open{0}, most{100}, tries{0}, highest{0};
  std::atomic<bool> hangs{false};
  std::atomic<int> generation{0};  // connections of an earlier one are dead
};

class FakeConnection : public Pooled {
 public:
  explicit FakeConnection(std::shared_ptr<Server> server)
      : server_(std::move(server)), generation_(server_->generation) {
    server_->highest = std::max<int>(server_->highest, ++server_->open);
  }
  ~FakeConnection() override { --server_->open; }
  bool is_usable() noexcept override { return !spoilt && generation_ == server_->generation; }
  bool spoilt = false;

 private:
  const std::shared_ptr<Server> server_;
  const int generation_;
};

class PoolTest : public ::testing::Test {
 protected:
  Pool make(std::size_t most = 4, std::size_t reserved = 1) { return make(most, reserved, server); }
  static Pool make(std::size_t most, std::size_t reserved, std::shared_ptr<Server> server) {
    return Pool({"mine", most, reserved, [server = std::move(server)](const StopSignal& stop) {
                   ++server->tries;
                   while (server->hangs && stop.pause(1ms)) continue;
                   if (server->open >= server->most) {
                     throw Error(Errc::kUnreachable, "mine: the server is full");
                   }
                   return std::make_unique<FakeConnection>(server);
                 }});
  }
  static LocalTime soon() { return BootClock::now() + 5s; }
  static std::string error_of(Pool& pool, Lane lane, milliseconds patience) {
    try {
      pool.borrow(lane, BootClock::now() + patience);
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const std::shared_ptr<Server> server = std::make_shared<Server>();
};

TEST_F(PoolTest, OneConnectionServesOneCallAfterTheOther) {
  Pool pool = make();
  for (int i = 0; i < 100; ++i) pool.borrow(i % 2 == 0 ? Lane::kAsk : Lane::kKeep, soon());
  EXPECT_EQ(server->tries, 1);
}

TEST_F(PoolTest, ASpoiltConnectionIsNotUsedAgain) {
  Pool pool = make();
  {
    const Pool::Borrowed first = pool.borrow(Lane::kAsk, soon());
    static_cast<FakeConnection&>(first.get()).spoilt = true;
  }
  EXPECT_EQ(server->open, 0);
  pool.borrow(Lane::kAsk, soon());
  EXPECT_EQ(server->tries, 2);
}

TEST_F(PoolTest, ADeadConnectionIsNoticedBeforeItCostsACall) {
  Pool pool = make();
  pool.borrow(Lane::kAsk, soon());
  ++server->generation;
  EXPECT_TRUE(pool.borrow(Lane::kAsk, soon()).get().is_usable());
}

TEST_F(PoolTest, AFailureClosesTheOthersOnlyWhereTheServerIsGoneOrOnlyReads) {
  Pool pool = make(2, 1);
  const Error unreachable(Errc::kUnreachable, "mine"), denied(Errc::kDenied, "mine");
  const auto left = [&](const Error& error, bool is_spoilt, bool only_reads) {
    const auto first = pool.borrow(Lane::kKeep, soon());
    pool.borrow(Lane::kKeep, soon());
    static_cast<FakeConnection&>(first.get()).spoilt = is_spoilt;
    pool.note_failure(first.get(), error, only_reads);
    return server->open - 1;
  };
  EXPECT_EQ(left(unreachable, false, false), 1) << "as of a disk that is full";
  EXPECT_EQ(left(denied, true, false), 1);
  EXPECT_EQ(left(unreachable, true, false), 0);
  EXPECT_EQ(left(denied, false, true), 0);
}

TEST_F(PoolTest, AcquisitionsLeaveTheReservedOneToRenewals) {
  Pool pool = make(3, 1);
  const auto a = pool.borrow(Lane::kAsk, soon());
  const auto b = pool.borrow(Lane::kAsk, soon());
  EXPECT_NE(error_of(pool, Lane::kAsk, 50ms), "none");
  EXPECT_EQ(error_of(pool, Lane::kKeep, 5s), "none");
}

TEST_F(PoolTest, TheReservedOneIsOpenedBeforeTheServerIsFull) {
  server->most = 2;
  Pool pool = make(8, 1);
  const auto held = pool.borrow(Lane::kAsk, soon(), Pool::Reserve::kNow);
  ASSERT_TRUE(eventually([&] { return server->open == 2; }));
  // Others ask in vain, while the opener tries and fails.
  std::atomic<bool> enough{false};
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      while (!enough) EXPECT_NE(error_of(pool, Lane::kAsk, 20ms), "none");
    });
  }
  for (const int before = server->tries; server->tries < before + 3;) {
    EXPECT_EQ(error_of(pool, Lane::kKeep, 5s), "none");
  }
  enough = true;
}

TEST_F(PoolTest, OnlyCallsAskForTheReservedOne) {
  server->most = 1;
  Pool pool = make(8, 1);
  pool.borrow(Lane::kAsk, soon(), Pool::Reserve::kNow);
  ASSERT_TRUE(eventually([&] { return server->tries == 2; }));
  // As long as another pool, where somebody waits, takes for some more tries.
  const std::shared_ptr<Server> busy = std::make_shared<Server>();
  busy->most = 1;
  Pool other = make(8, 1, busy);
  std::optional<Pool::Borrowed> held(other.borrow(Lane::kAsk, soon()));
  std::jthread waiter([&] { other.borrow(Lane::kAsk, soon()); });
  EXPECT_TRUE(eventually([&] { return busy->tries >= 4; }));
  held.reset();
  EXPECT_EQ(server->tries, 2) << "a full server is asked again and again";
}

// Stands in line for a connection from the constructor on, and gives it back at once.
class Waiter {
 public:
  Waiter(Pool& pool, Lane lane, std::atomic<int>& order)
      : thread_([this, &pool, lane, &order] {
          thread_id_ = gettid();
          const auto mine = pool.borrow(lane, BootClock::now() + 60s);
          place = ++order;
        }) {
    EXPECT_TRUE(eventually([&] { return is_asleep(thread_id_); }));
  }

  std::atomic<int> place{0};  // from 1; 0: it still waits

 private:
  std::atomic<pid_t> thread_id_{0};
  std::jthread thread_;
};

TEST_F(PoolTest, ARenewalIsServedBeforeAcquisitions) {
  server->most = 1;
  Pool pool = make();
  std::optional<Pool::Borrowed> held(pool.borrow(Lane::kAsk, soon()));
  std::atomic<int> order{0};
  const Waiter first(pool, Lane::kAsk, order), second(pool, Lane::kAsk, order);
  const Waiter renewal(pool, Lane::kKeep, order);
  held.reset();
  EXPECT_TRUE(eventually([&] { return order == 3; }));
  EXPECT_EQ(renewal.place, 1) << "it stood in the queue of the others";
}

TEST_F(PoolTest, WhoWaitsHearsAtOnceWhyNoneCanBeOpened) {
  server->most = 0;
  Pool pool = make();
  const LocalTime began = BootClock::now();
  EXPECT_EQ(error_of(pool, Lane::kAsk, 30s), "mine: the server is full");
  EXPECT_LT(BootClock::now() - began, 20s);
  server->most = 1;
  EXPECT_TRUE(eventually([&] { return error_of(pool, Lane::kAsk, 1s) == "none"; }));
}

TEST_F(PoolTest, AServerThatRefusesIsLeftAloneForAWhile) {
  server->most = 0;
  Pool pool = make();
  const LocalTime until = BootClock::now() + 300ms;
  while (BootClock::now() < until) EXPECT_NE(error_of(pool, Lane::kAsk, 1s), "none");
  EXPECT_LT(server->tries, 20);
}

TEST_F(PoolTest, ACallEndsAtItsDeadlineWhileOpeningHangs) {
  server->hangs = true;
  Pool pool = make();
  const LocalTime began = BootClock::now();
  EXPECT_EQ(error_of(pool, Lane::kAsk, 50ms), "mine: no connection was open before the deadline");
  EXPECT_GE(BootClock::now() - began, 50ms);
  EXPECT_LT(BootClock::now() - began, 10s);
}

TEST_F(PoolTest, ManyThreadsNeverHaveMoreThanAllowed) {
  Pool pool = make(3, 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 300; ++round) {
        const auto mine = pool.borrow((i + round) % 3 == 0 ? Lane::kKeep : Lane::kAsk, soon());
        if (round % 50 == 0) static_cast<FakeConnection&>(mine.get()).spoilt = true;
        if (round % 70 == 0) pool.drop_idle();
      }
    });
  }
  threads.clear();
  EXPECT_LE(server->highest, 3);
}

TEST_F(PoolTest, WhatIsBorrowedMayOutliveIt) {
  std::unique_ptr<Pool::Borrowed> borrowed;
  {
    Pool pool = make();
    borrowed = std::make_unique<Pool::Borrowed>(pool.borrow(Lane::kAsk, soon()));
  }
  ASSERT_GE(server.use_count(), 3) << "ours, the connection's, and that of what it goes back to";
  borrowed.reset();
  EXPECT_TRUE(eventually([&] { return server->open == 0; }));
}

TEST_F(PoolTest, NothingStaysOpenBehindIt) {
  {
    Pool pool = make();
    pool.borrow(Lane::kAsk, soon(), Pool::Reserve::kNow);
  }
  EXPECT_TRUE(eventually([&] { return server->open == 0; }));
}

}  // namespace
}  // namespace simba::kit
