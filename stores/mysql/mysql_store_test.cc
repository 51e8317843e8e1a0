#include <mysql.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "stores/mysql/mysql_fixture.h"

// What this store does with its table, on a real server.
namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kNowMs = "UNIX_TIMESTAMP(SYSDATE(3)) * 1000";

class MysqlStoreTest : public MysqlTest {
 protected:
  // INNODB_TRX would say so too, but not to somebody who asks all the time.
  bool somebody_waits_for_a_row() {
    return admin()(
               "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE TIME_MS > 100 AND "
               "ID <> CONNECTION_ID() AND INFO LIKE '%" +
               table + "%'") != "0";
  }
};

TEST_F(MysqlStoreTest, KeepsTheRowOfTheSeedsToTheLetter) {
  const auto store = open();
  const Observation held = take(*store, "report", "a~1");
  const std::string lease = "owner_id, ttl_at - acquired_at, transition_at - acquired_at, version";
  EXPECT_EQ(row("report", lease), "a~1|10000|16000|1");
  EXPECT_EQ(row("report", "fencing_token"), std::to_string(held.owner.token));
  EXPECT_EQ(row("report", "ABS(CAST(acquired_at AS SIGNED) - UNIX_TIMESTAMP() * 1000) < 9000"),
            "1");
  renew(*store, "report", "a~1", held.owner.token, 20s, 0s);
  EXPECT_EQ(row("report", lease), "a~1|20000|20000|2");
  release(*store, "report", "a~1");
  EXPECT_EQ(row("report", "owner_id, acquired_at, ttl_at, transition_at, version"), "|0|0|0|3");
  EXPECT_EQ(row("report", "fencing_token"), std::to_string(held.owner.token));
}

TEST_F(MysqlStoreTest, ARenewalIsAnsweredWithWhatTheRowHolds) {
  const auto store = open();
  const Token token = take(*store, "report", "a~1").owner.token;
  const Observation renewed = renew(*store, "report", "a~1", token, 12s, 3s);
  const auto ms = [](StoreTime time) { return std::to_string(time.time_since_epoch().count()); };
  EXPECT_EQ(row("report", "acquired_at, ttl_at, transition_at, fencing_token"),
            ms(*renewed.owner.acquired_at) + '|' + ms(*renewed.owner.ttl_at) + '|' +
                ms(renewed.owner.transition_at) + '|' + std::to_string(renewed.owner.token));
}

TEST_F(MysqlStoreTest, ALostAttemptWritesNothing) {
  const auto store = open();
  const Observation held = take(*store, "a", "owner~1");
  take(*store, "b", "owner~1");
  const auto writes = [&] {
    return admin()("SELECT MODIFIED_COUNTER, (SELECT SUM(version) FROM " + table +
                   ") FROM information_schema.INNODB_SYS_TABLESTATS WHERE NAME LIKE '%/" + table +
                   '\'');
  };
  const std::string before = writes();
  take(*store, "a", "other~1");
  renew(*store, "a", "other~1", held.owner.token);
  const std::vector<Claim> takes{{"a", "other~2", 0, 0, 10s, 6s}, {"b", "other~2", 0, 0, 10s, 6s}};
  store->contend(takes, soon());
  const std::vector<Claim> renewals{{"a", "owner~1", held.owner.token + 1, 0, 10s, 6s},
                                    {"b", "other~2", 7, 0, 10s, 6s}};
  store->contend(renewals, soon());
  EXPECT_EQ(writes(), before);
  take(*store, "a", "owner~1");
  EXPECT_NE(writes(), before) << "this figure tells nothing";
}

TEST_F(MysqlStoreTest, CountsTheLeaseFromWhenTheRowWasGot) {
  const auto store = open();
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  auto stranger = lock_row("report");
  Observation got;
  std::jthread taker([&] { got = take(*store, "report", "b~1"); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
  std::this_thread::sleep_for(200ms);
  const std::string unlocked_at = admin()("SELECT FLOOR(" + std::string(kNowMs) + ')');
  stranger.reset();
  taker.join();
  EXPECT_EQ(got.owner.id, "b~1");
  EXPECT_GE(got.owner.acquired_at->time_since_epoch().count(), std::stoll(unlocked_at))
      << "the clock was read before the wait";
  EXPECT_GT(got.owner.transition_at - got.now, 15900ms);
}

TEST_F(MysqlStoreTest, ATakeThatWaitedLosesAgainstWhoeverHadTheRowLocked) {
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

TEST_F(MysqlStoreTest, ARenewalThatWaitedLongerThanItsLeaseRevivesNothing) {
  const auto store = open();
  const Token token = observed(contend(*store, {"report", "a~1", 0, 0, 1500ms, 500ms})).owner.token;
  auto stranger = lock_row("report");
  Observation got;
  {
    const std::jthread renewer([&] { got = renew(*store, "report", "a~1", token); });
    ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
    ASSERT_TRUE(
        eventually([&] { return row("report", "transition_at < " + std::string(kNowMs)) == "1"; }));
    stranger.reset();
  }
  EXPECT_TRUE(got.is_free()) << "the lease was over before the row was free";
  EXPECT_TRUE(observe(*store, "report").is_free());
}

TEST_F(MysqlStoreTest, OneClaimOnALockedRowWaitsAndIsBlockedBeforeItsDeadline) {
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

TEST_F(MysqlStoreTest, OfABatchTheLockedRowAloneIsBlocked) {
  const auto store = open();
  std::vector<Claim> claims;
  for (const char* mutex : {"a", "b", "c"}) claims.push_back({mutex, "x~1", 0, 0, 10s, 6s});
  for (const Answer& answer : store->contend(claims, soon())) {
    EXPECT_EQ(observed(answer).owner.id, "x~1");
  }
  for (Claim& claim : claims) claim.token = observe(*store, claim.mutex).owner.token;
  auto stranger = lock_row("b");
  const LocalTime began = BootClock::now();
  std::vector<Claim> again = claims;
  for (Claim& claim : again) claim.token = 0;
  for (const Answers& answers : {store->contend(again, soon()), store->contend(claims, soon()),
                                 store->release(claims, soon())}) {
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[0]));
    EXPECT_TRUE(std::holds_alternative<Blocked>(answers[1]));
    EXPECT_TRUE(std::holds_alternative<Observation>(answers[2]));
  }
  EXPECT_LT(BootClock::now() - began, 5s) << "it waited for the row";
  stranger.reset();
  EXPECT_EQ(observe(*store, "a").owner.id, "");
  EXPECT_EQ(observe(*store, "b").owner.id, "x~1");
  EXPECT_EQ(observe(*store, "c").owner.id, "");
}

TEST_F(MysqlStoreTest, AnswersAThousandClaimsOfWhichSomeAreBad) {
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

TEST_F(MysqlStoreTest, AThousandRenewalsAreOneStatementAndOneRead) {
  make_user();
  make_table();
  grant();
  const auto store = open(user, "connections=2");
  std::vector<std::string> names(1'000);
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "mutex-" + std::to_string(1'000 + i);
    claims.push_back({names[i], "a~1", 0, 0, 60s, 6s});
  }
  const Answers taken = store->contend(claims, soon());
  for (std::size_t i = 0; i < names.size(); ++i) claims[i].token = observed(taken[i]).owner.token;
  // What a session was asked: a SET, the INSERT that renews, and the SELECT.
  admin()("SET GLOBAL userstat = ON");
  const auto asked = [&] {
    const std::string counts = admin()(
        "SELECT SELECT_COMMANDS, UPDATE_COMMANDS FROM information_schema.USER_STATISTICS "
        "WHERE USER = '" +
        user + '\'');
    return counts.empty() ? std::string("0|0") : counts;
  };
  store->contend({claims.data(), 2}, soon());  // so that the session is counted
  const std::string before = asked();
  const Answers renewed = store->contend(claims, soon());
  EXPECT_EQ(std::get<Observation>(renewed[999]).owner.token, claims[999].token);
  const std::string after = asked();
  const auto first = [](const std::string& counts) { return std::stoi(counts); };
  const auto second = [](const std::string& counts) {
    return std::stoi(counts.substr(counts.find('|') + 1));
  };
  EXPECT_LE(first(after) - first(before), 1) << before << " " << after;
  EXPECT_LE(second(after) - second(before), 1) << before << " " << after;
  EXPECT_EQ(
      admin()("SELECT MIN(version), MAX(version) FROM " + table + " WHERE mutex > 'mutex-1001'"),
      "2|2");
}

TEST_F(MysqlStoreTest, ATokenIsAtLeastTheClockOfTheServer) {
  const auto store = open();
  const Token before = take(*store, "report", "a~1").owner.token;
  admin()("DELETE FROM " + table);  // as a failover that loses the last writes would
  const Token after = take(*store, "report", "b~1").owner.token;
  EXPECT_GT(after, before);
}

TEST_F(MysqlStoreTest, TheVersionBeginsAnewBeforeJvmSimbaCannotReadItAnyMore) {
  const auto store = open();
  const Token token = take(*store, "report", "a~1").owner.token;
  admin()("UPDATE " + table + " SET version = 2147483647");
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.token, token);
  EXPECT_EQ(row("report", "version"), "0");
}

// One row that is missing, a hundred connections that want it.
TEST_F(MysqlStoreTest, AStormOnAMissingRowHasOneOwnerAndNoDeadlock) {
  make_table();
  constexpr int kStores = 10, kThreads = 10;
  std::vector<std::shared_ptr<Store>> stores;
  for (int i = 0; i < kStores; ++i) {
    stores.push_back(open({}, "connections=11"));
    // All connections are open before it begins.
    std::vector<std::jthread> warm;
    for (int k = 0; k < kThreads; ++k) {
      warm.emplace_back([&, store = stores.back()] {
        EXPECT_EQ(error_of([&] { store->list("", 1, soon()); }), "none");
      });
    }
  }
  for (int round = 0; round < 5; ++round) {
    const std::string mutex = "storm-" + std::to_string(round);
    std::atomic<int> ready{0}, won{0}, refused{0};
    std::atomic<bool> go{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < kStores * kThreads; ++i) {
      threads.emplace_back([&, i] {
        const std::string id = "c" + std::to_string(i) + "~1";
        ++ready;
        while (!go) std::this_thread::yield();
        const std::string error = error_of([&] {
          const Observation seen = take(*stores[static_cast<std::size_t>(i % kStores)], mutex, id);
          ++(seen.owner.id == id ? won : refused);
        });
        EXPECT_EQ(error, "none");
      });
    }
    while (ready < kStores * kThreads) std::this_thread::yield();
    const LocalTime began = BootClock::now();
    go = true;
    threads.clear();
    const auto took = std::chrono::duration_cast<milliseconds>(BootClock::now() - began);
    RecordProperty("ms_of_" + mutex, static_cast<int>(took.count()));
    EXPECT_EQ(won, 1) << mutex;
    EXPECT_EQ(refused, kStores * kThreads - 1) << mutex;
  }
}

TEST_F(MysqlStoreTest, ManyMakeTheTableAtOnce) {
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

TEST_F(MysqlStoreTest, ManyThreadsAtOnceNeverHaveMoreConnectionsThanAllowed) {
  make_user();
  make_table();
  grant();
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
  EXPECT_LE(count_connections("TRUE"), 3);
  EXPECT_GE(count_connections("TRUE"), 2);
}

TEST_F(MysqlStoreTest, APassedDeadlineSendsNothing) {
  const auto store = open();
  take(*store, "other", "a~1");
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, BootClock::now());
              }),
              HasSubstr("deadline"));
  EXPECT_EQ(row("report", "owner_id"), "");
}

TEST_F(MysqlStoreTest, WorksOnConnectionsOfTheUser) {
  const MysqlOptions there = options();
  MysqlOptions given;
  std::atomic<int> made{0};
  const auto connect = [&made, there](bool is_ready) {
    ++made;
    MYSQL* connection = mysql_init(nullptr);
    if (is_ready) mysql_optionsv(connection, MYSQL_OPT_NONBLOCK, nullptr);
    mysql_real_connect(connection, "127.0.0.1", there.user.c_str(), there.password.c_str(),
                       there.database.c_str(), there.hosts.at(0).second, nullptr,
                       CLIENT_MULTI_STATEMENTS);
    return connection;
  };
  given.connector = [&] { return connect(true); };
  given.database = there.database;
  given.table = table;
  EXPECT_EQ(take(*open_mysql(given), "report", "a~1").owner.id, "a~1");
  EXPECT_GE(made, 1);
  given.connector = [&] { return connect(false); };
  EXPECT_THAT(error_of([&] { take(*open_mysql(given), "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("MYSQL_OPT_NONBLOCK")));
  given.connector = []() -> MYSQL* { return nullptr; };
  EXPECT_THAT(error_of([&] { take(*open_mysql(given), "report", "a~1"); }),
              StartsWith("the store cannot be reached"));
}

TEST_F(MysqlStoreTest, IsDeadInAForkedChildAndUnharmedInTheParent) {
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

}  // namespace
}  // namespace simba::mysql
