// What every store in SQL does with its table, on a real server. Compiled once for each of them,
// with its fixture, which says what differs: how SQL tells the time, who waits, what was written.
#include SIMBA_SQL_FIXTURE

#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <thread>

namespace simba::kit {
namespace {

using namespace fixture;  // NOLINT(google-build-using-namespace): for tests alone
using ::testing::HasSubstr;

class SqlStoreTest : public SqlFixture {
 protected:
  std::int64_t now_ms() const { return std::stoll(admin()(std::string("SELECT ") + kNowMs)); }
};

TEST_F(SqlStoreTest, ALostAttemptWritesNothing) {
  const auto store = open();
  const Observation held = take(*store, "a", "owner~1");
  take(*store, "b", "owner~1");
  const std::string before = writes();
  take(*store, "a", "other~1");
  renew(*store, "a", "other~1", held.owner.token);
  const std::vector<Claim> takes{{"a", "other~2", 0, 0, 10s, 6s}, {"b", "other~2", 0, 0, 10s, 6s}};
  store->contend(takes, soon());
  const std::vector<Claim> renewals{{"a", "owner~1", held.owner.token + 1, 0, 10s, 6s},
                                    {"b", "other~2", 7, 0, 10s, 6s}};
  store->contend(renewals, soon());
  EXPECT_EQ(writes(), before) << "a row was written or locked";
  take(*store, "a", "owner~1");
  EXPECT_NE(writes(), before) << "this figure tells nothing";
}

TEST_F(SqlStoreTest, ShedLock3577CountsTheLeaseFromWhenTheRowWasGot) {
  const auto store = open();
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  auto stranger = lock_row("report");
  Observation got;
  std::jthread taker([&] { got = take(*store, "report", "b~1"); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
  const std::int64_t waiting_at = now_ms();
  std::int64_t unlocked_at = 0;
  ASSERT_TRUE(eventually([&] { return (unlocked_at = now_ms()) > waiting_at + 5; }));
  stranger.reset();
  taker.join();
  EXPECT_EQ(got.owner.id, "b~1");
  EXPECT_GE(got.owner.acquired_at->time_since_epoch().count(), unlocked_at)
      << "the clock was read before the wait";
  EXPECT_GT(got.owner.transition_at - got.now, 15900ms);
}

TEST_F(SqlStoreTest, ATakeThatWaitedLosesAgainstWhoeverHadTheRowLocked) {
  const auto store = open();
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  auto stranger = lock_row("report");
  Observation got;
  std::jthread taker([&] { got = take(*store, "report", "b~1"); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
  (*stranger)("UPDATE " + table +
              " SET owner_id = 'rival~1', transition_at = 9000000000000, fencing_token = 7");
  (*stranger)("COMMIT");
  taker.join();
  EXPECT_EQ(got.owner.id, "rival~1");
  EXPECT_EQ(row("report", "owner_id, fencing_token"), "rival~1|7");
}

TEST_F(SqlStoreTest, ARenewalThatWaitedLongerThanItsLeaseRevivesNothing) {
  const auto store = open();
  const Token token = observed(contend(*store, {"report", "a~1", 0, 0, 4s, 2s})).owner.token;
  auto stranger = lock_row("report");
  Answer got = Blocked{};
  {
    // MySQL waits a second for a row: there it is asked again.
    const std::jthread renewer([&, until = BootClock::now() + 90s] {
      while (std::holds_alternative<Blocked>(got) && BootClock::now() < until) {
        got = contend(*store, {"report", "a~1", token, 0, 4s, 2s});
      }
    });
    ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
    ASSERT_TRUE(
        eventually([&] { return holds("report", "transition_at < " + std::string(kNowMs)); }));
    stranger.reset();
  }
  ASSERT_FALSE(std::holds_alternative<Blocked>(got));
  EXPECT_TRUE(observed(got).is_free()) << "the lease was over before the row was free";
  EXPECT_TRUE(observe(*store, "report").is_free());
}

TEST_F(SqlStoreTest, OneClaimOnALockedRowWaitsAndIsBlockedBeforeItsDeadline) {
  const auto store = open();
  const Token token = take(*store, "report", "a~1").owner.token;
  const auto stranger = lock_row("report");
  // The server's own limit ends the wait, at three quarters of the time the call has.
  const auto expect_blocked = [](const std::function<Answer(LocalTime)>& call) {
    const LocalTime began = BootClock::now();
    EXPECT_TRUE(std::holds_alternative<Blocked>(call(began + 8s)));
    EXPECT_GE(BootClock::now() - began, 1s) << "it did not wait";
    EXPECT_LT(BootClock::now() - began, 8s) << "the server's limit is not below the deadline";
  };
  const Claim taking{"report", "a~1", 0, 0, 10s, 6s}, renewal{"report", "a~1", token, 0, 10s, 6s};
  expect_blocked([&](LocalTime until) { return contend(*store, taking, until); });
  expect_blocked([&](LocalTime until) { return contend(*store, renewal, until); });
  expect_blocked([&](LocalTime until) { return store->release({&renewal, 1}, until).at(0); });
}

TEST_F(SqlStoreTest, OfABatchTheLockedRowAloneIsBlocked) {
  const auto store = open();
  std::vector<Claim> takes;
  for (const char* mutex : {"a", "b", "c"}) takes.push_back({mutex, "x~1", 0, 0, 10s, 6s});
  std::vector<Claim> renewals = takes;
  const Answers taken = store->contend(takes, soon());
  for (std::size_t i = 0; i < 3; ++i) renewals[i].token = observed(taken[i]).owner.token;
  auto stranger = lock_row("b");
  // A row of the same millisecond passes for one that the batch has written.
  ASSERT_TRUE(eventually([&] { return holds("b", "acquired_at < " + std::string(kNowMs)); }));
  const LocalTime began = BootClock::now();
  for (const Answers& answers : {store->contend(takes, soon()), store->contend(renewals, soon()),
                                 store->release(renewals, soon())}) {
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[0]));
    EXPECT_TRUE(std::holds_alternative<Blocked>(answers[1]));
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[2]));
  }
  EXPECT_LT(BootClock::now() - began, 20s) << "it waited for the row";
  stranger.reset();
  EXPECT_EQ(observe(*store, "a").owner.id, "");
  EXPECT_EQ(observe(*store, "b").owner.id, "x~1");
  EXPECT_EQ(observe(*store, "c").owner.id, "");
}

TEST_F(SqlStoreTest, OfABatchThatMeetsAnUnfinishedInsertNobodyIsLeftWithoutAnAnswer) {
  make_table();
  const auto stranger = begin_insert("b");
  const auto store = open();
  const std::vector<Claim> takes{
      {"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~1", 0, 0, 10s, 6s}, {"c", "x~1", 0, 0, 10s, 6s}};
  const LocalTime began = BootClock::now();
  for (const Answer& answer : store->contend(takes, began + 12s)) {
    EXPECT_TRUE(std::holds_alternative<Blocked>(answer));
  }
  EXPECT_LT(BootClock::now() - began, 9s) << "it waited as long as one claim does";
  EXPECT_EQ(take(*store, "a", "x~1").owner.id, "x~1");
}

TEST_F(SqlStoreTest, AnswersAThousandClaimsOfWhichSomeAreBad) {
  const auto store = open();
  std::vector<std::string> names(1'000);
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "mutex-" + std::to_string(1'000 + i);
    if (i == 500) names[i] += std::string(100, 'x');
    if (i == 600) names[i] += '\0';
    if (i == 700) names[i] += '\xff';
    claims.push_back({names[i], "a~1", 0, 0, 60s, 6s});
  }
  const auto is_bad = [](std::size_t i) { return i == 500 || i == 600 || i == 700; };
  Answers answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_bad(i)) {
      ASSERT_EQ(std::get<Error>(answers[i]).errc(), Errc::kMisconfigured) << i;
      continue;
    }
    ASSERT_EQ(observed(answers[i]).owner.id, "a~1") << i;
    claims[i].token = observed(answers[i]).owner.token;
  }
  EXPECT_THAT(std::get<Error>(answers[500]).what(),
              HasSubstr("110 bytes; this store holds at most 66"));
  answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[999]).owner.token, claims[999].token);
  EXPECT_EQ(row("mutex-1999", "version"), "2");
  answers = store->release(claims, soon());
  EXPECT_EQ(std::get<Error>(answers[500]).errc(), Errc::kMisconfigured);
  EXPECT_TRUE(observe(*store, names[999]).is_free());
}

TEST_F(SqlStoreTest, ARowAtTheEndOfTheTokensIsCorruptForThatClaimAlone) {
  const auto store = open();
  take(*store, "b", "x~0");
  admin()("UPDATE " + table + " SET fencing_token = 9223372036854775807, transition_at = 0");
  const std::vector<Claim> claims{
      {"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~2", 0, 0, 10s, 6s}, {"c", "x~3", 0, 0, 10s, 6s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
  EXPECT_EQ(std::get<Error>(answers[1]).errc(), Errc::kCorrupt);
  EXPECT_EQ(observed(answers[2]).owner.id, "x~3");
  EXPECT_EQ(std::get<Error>(contend(*store, claims[1])).errc(), Errc::kCorrupt);
  constexpr Token kHuge = std::numeric_limits<Token>::max();
  EXPECT_EQ(std::get<Error>(contend(*store, {"d", "x~1", 0, kHuge, 10s, 6s})).errc(),
            Errc::kMisconfigured);
}

TEST_F(SqlStoreTest, ATokenIsAtLeastTheClockOfTheServer) {
  const auto store = open();
  const Token before = take(*store, "report", "a~1").owner.token;
  admin()("DELETE FROM " + table);  // as a failover that loses the last writes would
  const Token after = take(*store, "report", "b~1").owner.token;
  EXPECT_GT(after, before);
}

TEST_F(SqlStoreTest, ManyMakeTheTableAtOnce) {
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const std::string error = error_of([&] { take(*open(), "m" + std::to_string(i), "a~1"); });
        EXPECT_EQ(error, "none");
        ++good;
      });
    }
  }
  EXPECT_EQ(good, 8);
  EXPECT_EQ(admin()("SELECT COUNT(*) FROM " + table), "8");
}

TEST_F(SqlStoreTest, ManyThreadsAtOnceNeverHaveMoreConnectionsThanAllowed) {
  prepare_user();
  const auto store = open(user, "connections=3");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 30; ++round) {
        const std::string mutex = "m" + std::to_string(i);
        release(*store, mutex, "a~1", take(*store, mutex, "a~1").owner.token);
      }
    });
  }
  threads.clear();
  EXPECT_TRUE(eventually([&] {  // the server may still list one that was closed
    const int there = count_connections("TRUE");
    return there >= 2 && there <= 3;
  }));
}

TEST_F(SqlStoreTest, APassedDeadlineSendsNothing) {
  const auto store = open();
  take(*store, "other", "a~1");
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, BootClock::now());
              }),
              HasSubstr("deadline"));
  EXPECT_EQ(row("report", "owner_id"), "");
}

TEST_F(SqlStoreTest, IsDeadInAForkedChildAndUnharmedInTheParent) { expect_fork_safe(open()); }

}  // namespace
}  // namespace simba::kit
