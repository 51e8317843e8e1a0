#include "stores/zookeeper/session_lease.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace simba::zookeeper {
namespace {

using namespace std::chrono_literals;

class SessionLeaseTest : public ::testing::Test {
 protected:
  SessionLeaseTest() { lease.begin(t(0ms), 24s, 2s); }
  static LocalTime t(milliseconds since) { return LocalTime{} + 1h + since; }
  void read(milliseconds sent) { lease.answered(t(sent), t(sent)); }
  void write(milliseconds sent) {
    lease.committed(t(sent));
    read(sent);
  }

  SessionLease lease;
};

TEST_F(SessionLeaseTest, IsFiveSixthsOfTheTimeoutLessATick) {
  EXPECT_EQ(lease.length(), 18s);
  EXPECT_EQ(lease.until(), t(18s));
}

TEST_F(SessionLeaseTest, CountsFromTheWriteWhileRequestsGoOutOnTime) {
  for (milliseconds sent = 4s; sent < 100s; sent += 4s) {
    write(sent);
    EXPECT_GE(lease.until(), t(sent + 18s)) << sent.count();
    EXPECT_LE(lease.until(), t(sent + 18s)) << sent.count();
  }
}

TEST_F(SessionLeaseTest, AReadProvesNothing) {
  for (milliseconds sent = 4s; sent < 100s; sent += 4s) read(sent);
  EXPECT_EQ(lease.until(), t(18s));
}

TEST_F(SessionLeaseTest, AWriteAfterReadsIsAsGoodAsOneAfterWrites) {
  for (milliseconds sent = 4s; sent <= 96s; sent += 4s) read(sent);
  lease.committed(t(99s));
  EXPECT_EQ(lease.until(), t(99s + 18s));
}

// What the server had heard a moment before the write may not have been reported yet.
TEST_F(SessionLeaseTest, ARequestWithinTheLastTickDoesNotCount) {
  read(10s);
  read(19s);
  lease.committed(t(20s));
  EXPECT_EQ(lease.until(), t(10s + 24s));
}

// It was sent long before, but it may have come to the server together with the write.
TEST_F(SessionLeaseTest, ARequestWhoseAnswerCameWithinTheLastTickDoesNotCount) {
  read(10s);
  lease.answered(t(14s), t(19s));
  lease.committed(t(20s));
  EXPECT_EQ(lease.until(), t(10s + 24s));
}

TEST_F(SessionLeaseTest, AWriteAfterALongSilenceDoesNotPretend) {
  write(4s);
  lease.committed(t(27s));  // 23 s later: the session is about to end
  EXPECT_EQ(lease.until(), t(28s));
}

TEST_F(SessionLeaseTest, ManyRequestsDoNotMakeItForgetTheOneThatCounts) {
  for (std::chrono::microseconds sent = 0s; sent < 40s; sent += 250us) {
    lease.committed(t(0ms) + sent);
    lease.answered(t(0ms) + sent, t(0ms) + sent);
    if (sent > 5s) {
      ASSERT_GE(lease.until(), t(0ms) + sent + 18s - 1s);
    }
  }
}

TEST_F(SessionLeaseTest, NeverShrinksByALateAnswer) {
  write(4s);
  write(8s);
  const LocalTime before = lease.until();
  lease.committed(t(5s));
  EXPECT_EQ(lease.until(), before);
}

TEST_F(SessionLeaseTest, EndsSoonerWhereTheSessionDoes) {
  write(4s);
  write(8s);
  lease.shorten(12s);
  EXPECT_EQ(lease.length(), 8s);
  EXPECT_EQ(lease.until(), t(8s + 18s - 12s));
  write(12s);
  EXPECT_EQ(lease.until(), t(8s + 12s));
  lease.shorten(24s);
  EXPECT_EQ(lease.timeout(), 12s) << "it is never taken to be longer";
}

// The claim itself, against a model of what servers do: requests touch the session at the server
// they reach, every half tick that server reports to the leader, unless it is cut off. The way to
// that server may stand still for a while: what was sent meanwhile comes all at once.
TEST_F(SessionLeaseTest, NeverOutlivesTheSessionWhateverTheCut) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  struct Request {
    milliseconds sent;
    bool writes;
  };
  for (int round = 0; round < 20'000; ++round) {
    lease.begin(t(0ms), 24s, 2s);
    const milliseconds phase{random() % 1'000}, cut{1'000 + random() % 60'000};
    const milliseconds stall{random() % 60'000}, stalled = stall + milliseconds{random() % 8'000};
    LocalTime touched = t(0ms);        // at the leader
    std::deque<LocalTime> unreported;  // at the server
    std::deque<Request> on_the_way;
    milliseconds request = milliseconds{random() % 4'000}, report = phase;
    const auto arrive = [&](milliseconds now) {
      for (const auto& [sent, writes] : on_the_way) {
        unreported.push_back(t(now));
        if (writes) lease.committed(t(sent));
        lease.answered(t(sent), t(now));
      }
      on_the_way.clear();
    };
    while (true) {
      const milliseconds arrival = on_the_way.empty() ? milliseconds::max() : stalled;
      const milliseconds now = std::min({report, request, arrival});
      if (now >= cut) break;
      if (now == arrival) {
        arrive(now);
      } else if (now == report) {
        if (!unreported.empty()) touched = t(now);
        unreported.clear();
        report += 1s;
      } else {
        on_the_way.push_back({now, random() % 4 != 0});
        if (now < stall || now >= stalled) arrive(now);
        request += milliseconds{random() % 2 == 0 ? 4'000 : random() % 4'000};
      }
    }
    ASSERT_LE(lease.until(), touched + 24s) << "round " << round;
  }
}

}  // namespace
}  // namespace simba::zookeeper
