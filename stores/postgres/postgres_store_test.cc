#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "stores/postgres/postgres_fixture.h"

// What this store does with its table, on a real server.
namespace simba::postgres {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PostgresStoreTest : public PostgresTest {
 protected:
  std::string row(const std::string& mutex, const std::string& columns) {
    return admin()("SELECT " + columns + " FROM " + table + " WHERE mutex = '" + mutex + "'");
  }
  // Holds the lock of a row, from now on, until it goes.
  std::unique_ptr<Admin> lock_row(const std::string& mutex) const {
    auto stranger = std::make_unique<Admin>(postgres_options(url()).conninfo);
    (*stranger)("BEGIN");
    (*stranger)("SELECT FROM " + table + " WHERE mutex = '" + mutex + "' FOR UPDATE");
    return stranger;
  }
  bool somebody_waits_for_a_lock() { return count_backends("wait_event_type = 'Lock'") != "0"; }
};

TEST_F(PostgresStoreTest, KeepsTheRowOfTheSeedsToTheLetter) {
  const auto store = open();
  const Observation held = take(*store, "report", "a~1");
  // Each column reads the clock by itself, one after the other.
  const auto row_of_lease = [&](int ttl_ms, int lease_ms) {
    const auto about = [](const char* column, int ms) {
      return std::string(column) + " - acquired_at BETWEEN " + std::to_string(ms) + " AND " +
             std::to_string(ms + 2'000);
    };
    return row("report", "owner_id, " + about("ttl_at", ttl_ms) + ", " +
                             about("transition_at", lease_ms) + ", version");
  };
  EXPECT_EQ(row_of_lease(10'000, 16'000), "a~1|t|t|1");
  EXPECT_EQ(row("report", "fencing_token"), std::to_string(held.owner.token));
  EXPECT_EQ(row("report", "abs(acquired_at - extract(epoch FROM clock_timestamp()) * 1000) < 9000"),
            "t");
  renew(*store, "report", "a~1", held.owner.token, 20s, 0s);
  EXPECT_EQ(row_of_lease(20'000, 20'000), "a~1|t|t|2");
  release(*store, "report", "a~1");
  EXPECT_EQ(row("report", "owner_id, acquired_at, ttl_at, transition_at, version"), "|0|0|0|3");
  EXPECT_EQ(row("report", "fencing_token"), std::to_string(held.owner.token));
}

TEST_F(PostgresStoreTest, TakesAFreeRowThatSomebodyElseMade) {
  make_table();
  admin()("INSERT INTO " + table + " VALUES ('report', 0, 0, 0, '', 0)");
  EXPECT_EQ(observe(*open(), "report").owner.token, 0U);
  EXPECT_EQ(take(*open(), "report", "a~1").owner.id, "a~1");
}

TEST_F(PostgresStoreTest, ALostAttemptWritesNothing) {
  const auto store = open();
  const Observation held = take(*store, "a", "owner~1");
  take(*store, "b", "owner~1");
  const std::string before = row("a", "xmin, xmax, ctid, version") + row("b", "xmin, xmax, ctid");
  take(*store, "a", "other~1");
  renew(*store, "a", "other~1", held.owner.token);
  const std::vector<Claim> takes{{"a", "other~2", 0, 0, 10s, 6s}, {"b", "other~2", 0, 0, 10s, 6s}};
  store->contend(takes, soon());
  const std::vector<Claim> renewals{{"a", "owner~1", held.owner.token + 1, 0, 10s, 6s},
                                    {"b", "other~2", 7, 0, 10s, 6s}};
  store->contend(renewals, soon());
  EXPECT_EQ(row("a", "xmin, xmax, ctid, version") + row("b", "xmin, xmax, ctid"), before)
      << "a row was written or locked";
}

TEST_F(PostgresStoreTest, CountsTheLeaseFromWhenTheRowWasGot) {
  const auto store = open();
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  auto stranger = lock_row("report");
  Observation got;
  std::jthread taker([&] { got = take(*store, "report", "b~1"); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_lock(); }));
  std::this_thread::sleep_for(200ms);
  const std::string unlocked_at =
      admin()("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
  stranger.reset();
  taker.join();
  EXPECT_EQ(got.owner.id, "b~1");
  EXPECT_GE(got.owner.acquired_at->time_since_epoch().count(), std::stoll(unlocked_at))
      << "the clock was read before the wait";
  EXPECT_GT(got.owner.transition_at - got.now, 15900ms);
}

TEST_F(PostgresStoreTest, ATakeThatWaitedLosesAgainstWhoeverHadTheRowLocked) {
  const auto store = open();
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  auto stranger = lock_row("report");
  Observation got;
  std::jthread taker([&] { got = take(*store, "report", "b~1"); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_lock(); }));
  (*stranger)("UPDATE " + table +
              " SET owner_id = 'rival~1', transition_at = 9000000000000, fencing_token = 7");
  (*stranger)("COMMIT");
  taker.join();
  EXPECT_EQ(got.owner.id, "rival~1") << "asked once more, it sees who was faster";
  EXPECT_EQ(row("report", "owner_id, fencing_token"), "rival~1|7");
}

TEST_F(PostgresStoreTest, ARenewalThatWaitedLongerThanItsLeaseRevivesNothing) {
  const auto store = open();
  const Token token = observed(contend(*store, {"report", "a~1", 0, 0, 1500ms, 500ms})).owner.token;
  auto stranger = lock_row("report");
  Observation got;
  {
    const std::jthread renewer([&] { got = renew(*store, "report", "a~1", token); });
    ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_lock(); }));
    ASSERT_TRUE(eventually([&] {
      return row("report", "transition_at < extract(epoch FROM clock_timestamp()) * 1000") == "t";
    }));
    stranger.reset();
  }
  EXPECT_TRUE(got.is_free()) << "the lease was over before the row was free";
  EXPECT_TRUE(observe(*store, "report").is_free());
}

TEST_F(PostgresStoreTest, OneClaimOnALockedRowWaitsAndIsBlockedBeforeItsDeadline) {
  const auto store = open();
  const Token token = take(*store, "report", "a~1").owner.token;
  const auto stranger = lock_row("report");
  for (const Claim& claim :
       {Claim{"report", "a~1", 0, 0, 10s, 6s}, Claim{"report", "a~1", token, 0, 10s, 6s}}) {
    const LocalTime began = BootClock::now();
    EXPECT_TRUE(std::holds_alternative<Blocked>(contend(*store, claim, began + 2s)));
    EXPECT_GE(BootClock::now() - began, 1s) << "it did not wait";
    EXPECT_LT(BootClock::now() - began, 2s) << "the server's limit is not below the deadline";
  }
  const Claim claim{"report", "a~1", token, 0, 10s, 6s};
  EXPECT_TRUE(
      std::holds_alternative<Blocked>(store->release({&claim, 1}, BootClock::now() + 1s).at(0)));
}

TEST_F(PostgresStoreTest, OfABatchTheLockedRowAloneIsBlocked) {
  const auto store = open();
  std::vector<Claim> claims;
  for (const char* mutex : {"a", "b", "c"}) claims.push_back({mutex, "x~1", 0, 0, 10s, 6s});
  for (std::size_t i = 0; i < 3; ++i) {
    claims[i].token = observed(store->contend(claims, soon())[i]).owner.token;
    for (Claim& claim : claims) claim.token = i < 2 ? 0 : claim.token;
  }
  for (Claim& claim : claims) claim.token = observe(*store, claim.mutex).owner.token;
  auto stranger = lock_row("b");
  const LocalTime began = BootClock::now();
  for (const Answers& answers : {store->contend(claims, soon()), store->release(claims, soon())}) {
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[0]));
    EXPECT_TRUE(std::holds_alternative<Blocked>(answers[1]));
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[2]));
  }
  EXPECT_LT(BootClock::now() - began, 3s) << "it waited for the row";
  stranger.reset();
  EXPECT_EQ(observe(*store, "a").owner.id, "");
  EXPECT_EQ(observe(*store, "b").owner.id, "x~1");
  EXPECT_EQ(observe(*store, "c").owner.id, "");
}

TEST_F(PostgresStoreTest, AnswersAThousandClaimsOfWhichOneIsBad) {
  const auto store = open();
  std::vector<std::string> names(1'000);
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "mutex-" + std::to_string(1'000 + i);
    if (i == 500) names[i] += std::string(100, 'x');
    if (i == 600) names[i] += '\0';
    if (i == 700) names[i] += '\xff';
    claims.push_back({names[i], "a~1", 0, 0, 10s, 6s});
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
  answers = store->release(claims, soon());
  EXPECT_EQ(std::get<Error>(answers[500]).errc(), Errc::kMisconfigured);
  EXPECT_TRUE(observe(*store, names[999]).is_free());
}

// That of the statement's start: else what a reader that stands still gets late looks expired.
TEST_F(PostgresStoreTest, AllRowsOfAListAreOfOneTime) {
  const auto store = open();
  make_table();
  admin()("INSERT INTO " + table +
          " SELECT 'mutex-' || i, 0, 0, 0, 'a~1', 1, 1 FROM generate_series(1, 20000) i");
  const std::vector<Listed> all = store->list("mutex-", 20'000, soon());
  ASSERT_EQ(all.size(), 20'000U);
  EXPECT_EQ(all.front().observation.now, all.back().observation.now);
}

TEST_F(PostgresStoreTest, ARowAtTheEndOfTheTokensIsCorruptForThatClaimAlone) {
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

TEST_F(PostgresStoreTest, ATokenIsAtLeastTheClockOfTheServer) {
  const auto store = open();
  const Token before = take(*store, "report", "a~1").owner.token;
  admin()("DELETE FROM " + table);  // as a failover that loses the last writes would
  const Token after = take(*store, "report", "b~1").owner.token;
  EXPECT_GT(after, before);
}

TEST_F(PostgresStoreTest, ManyMakeTheTableAtOnce) {
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
  EXPECT_EQ(admin()("SELECT count(*) FROM " + table), "8");
}

TEST_F(PostgresStoreTest, ManyThreadsAtOnceNeverHaveMoreConnectionsThanAllowed) {
  const auto store = open("postgres", "connections=3");
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
  const int open = std::stoi(count_backends("true"));
  EXPECT_LE(open, 3);
  EXPECT_GE(open, 2);
}

TEST_F(PostgresStoreTest, StoresOfOneProcessShareOneListeningConnection) {
  const auto first = open(), second = open();
  const auto a = first->watch("report", {}, [] {});
  const auto b = second->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return a->is_live() && b->is_live(); }));
  EXPECT_EQ(count_backends("query LIKE 'LISTEN%'"), "1");
}

TEST_F(PostgresStoreTest, APassedDeadlineSendsNothing) {
  const auto store = open();
  take(*store, "other", "a~1");
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, BootClock::now());
              }),
              HasSubstr("deadline"));
  EXPECT_EQ(row("report", "owner_id"), "");
}

TEST_F(PostgresStoreTest, WorksOnConnectionsOfTheUser) {
  PostgresOptions given;
  const std::string conninfo = postgres_options(url()).conninfo;
  std::atomic<int> made{0};
  given.connector = [&, conninfo] {
    ++made;
    return PQconnectdb(conninfo.c_str());
  };
  given.table = table;
  const auto store = open_postgres(given);
  EXPECT_EQ(take(*store, "report", "a~1").owner.id, "a~1");
  EXPECT_GE(made, 1);
  given.connector = [] { return PQconnectdb("host=127.0.0.1 port=1 sslmode=disable"); };
  EXPECT_THAT(error_of([&] { take(*open_postgres(given), "report", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("refused")));
}

TEST_F(PostgresStoreTest, IsDeadInAForkedChildAndUnharmedInTheParent) {
  const auto store = open();
  const auto watch = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  const Token token = take(*store, "report", "a~1").owner.token;
  const pid_t child = fork();
  if (child == 0) {
    auto mine = store;
    const std::string error = error_of([&] { take(*mine, "report", "b~1"); });
    const_cast<std::shared_ptr<Store>&>(store).reset();  // NOLINT: the destructor must do no harm
    mine.reset();
    _exit(error.find("forked") != error.npos ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.id, "a~1");
  EXPECT_TRUE(watch->is_live());
}

TEST_F(PostgresStoreTest, IsNotMisledByTheRolesSettings) {
  make_role();
  make_table();
  admin()("GRANT SELECT, INSERT, UPDATE ON " + table + " TO " + role);
  admin()("ALTER ROLE " + role + " SET default_transaction_isolation = 'serializable'");
  admin()("ALTER ROLE " + role + " SET synchronous_commit = off");
  admin()("ALTER ROLE " + role + " SET timezone = 'Europe/Berlin'");
  const auto store = open(role);
  release(*store, "one", "a~1", take(*store, "one", "a~1").owner.token);
  // What changes while a claim waits is no conflict: it looks at the row as it is then.
  auto stranger = lock_row("one");
  std::string error;
  std::jthread taker([&] { error = error_of([&] { take(*store, "one", "b~1"); }); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_lock(); }));
  (*stranger)("UPDATE " + table + " SET version = 77");
  (*stranger)("COMMIT");
  taker.join();
  EXPECT_EQ(error, "none");
  EXPECT_EQ(row("one", "owner_id, version"), "b~1|78");
}

}  // namespace
}  // namespace simba::postgres
