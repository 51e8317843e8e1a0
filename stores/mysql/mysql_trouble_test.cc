#include <fcntl.h>

#include <sstream>
#include <thread>

#include "stores/mysql/connection.h"
#include "stores/mysql/mysql_fixture.h"
#include "stores/mysql/statements.h"
#include "testing/servers/relay.h"

// Trouble that an administrator can make and mend on a running server: each gives an error that
// says what to do, and calls succeed on the same store once it is over.
namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using MysqlTroubleTest = MysqlTest;

TEST_F(MysqlTroubleTest, AWrongPassword) {
  prepare_user("IDENTIFIED BY 'right'");
  const auto store = open(user + ":canary-4711");
  const std::string error = error_of([&] { take(*store, "report", "a~1"); });
  EXPECT_THAT(error, AllOf(StartsWith("the store denied"), HasSubstr("password"),
                           HasSubstr("MYSQL_PWD"), HasSubstr(user)));
  EXPECT_THAT(error, Not(HasSubstr("canary")));
  admin()("ALTER USER " + user + " IDENTIFIED BY 'canary-4711'");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  for (const std::string& line : log.all()) EXPECT_THAT(line, Not(HasSubstr("canary")));
}

TEST_F(MysqlTroubleTest, ALockedAccount) {
  prepare_user("ACCOUNT LOCK");
  const auto store = open(user);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("ACCOUNT UNLOCK")));
  alter_user("ACCOUNT UNLOCK");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlTroubleTest, AMissingTableThatTheUserMayNotMake) {
  make_user();
  const auto store = open(user);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("GRANT SELECT, INSERT, UPDATE"),
                    HasSubstr(table)));
  admin()("GRANT SELECT ON " + options().database + ".* TO " + user);
  ASSERT_TRUE(eventually([&] { return error_of([&] { observe(*store, "x"); }) != "none"; }));
  std::this_thread::sleep_for(300ms);  // the pool leaves a server alone that has refused it
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr(table), HasSubstr(user),
                    HasSubstr("CREATE TABLE"), HasSubstr("GRANT SELECT, INSERT, UPDATE")));
  make_table();
  grant();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlTroubleTest, ATableThatIsDroppedIsMadeAgain) {
  const auto store = open({}, "connections=2");
  const Token token = take(*store, "report", "a~1").owner.token;
  admin()("DROP TABLE " + table);
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  EXPECT_GT(observe(*store, "report").owner.token, token);
}

TEST_F(MysqlTroubleTest, ATableWithoutAColumnOrWithoutItsKey) {
  make_table();
  admin()("ALTER TABLE " + table + " DROP COLUMN version");
  const auto store = open();
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("no column version")));
  admin()("ALTER TABLE " + table + " ADD COLUMN version INT UNSIGNED NOT NULL, DROP PRIMARY KEY");
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { take(*store, "report", "a~1"); }).find("ADD PRIMARY KEY") !=
           std::string::npos;
  }));
  admin()("ALTER TABLE " + table + " ADD PRIMARY KEY (mutex)");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  // A key that serves as one, but has another name.
  admin()("ALTER TABLE " + table + " DROP PRIMARY KEY, ADD UNIQUE KEY names (mutex)");
  const std::vector<Claim> batch{{"x", "a~1", 0, 0, 10s, 6s}, {"y", "a~1", 0, 0, 10s, 6s}};
  const auto is_contended = [&](Store& there) {
    return error_of([&] {
             for (const Answer& each : there.contend(batch, soon())) observed(each);
           }) == "none";
  };
  EXPECT_TRUE(eventually([&] { return is_contended(*store); }));
  // Beside one of another column.
  admin()("ALTER TABLE " + table + " ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY");
  const auto later = open();
  EXPECT_TRUE(eventually([&] { return is_contended(*later); }));
  const Token token = take(*later, "z", "a~1").owner.token;
  release(*later, "z", "a~1", token);
  EXPECT_GT(take(*later, "z", "b~1").owner.token, token);
}

// SHOW COLUMNS tells of each column of a key that it is one.
TEST_F(MysqlTroubleTest, ATableWhoseKeyLetsAMutexBeThereTwice) {
  make_table();
  const std::vector<std::string> keys{
      "DROP PRIMARY KEY, ADD PRIMARY KEY (mutex, owner_id)",
      "DROP PRIMARY KEY, ADD PRIMARY KEY (mutex(10))",
      "DROP PRIMARY KEY, ADD UNIQUE KEY both_of_them (mutex, owner_id), ADD KEY names (mutex)",
      "DROP KEY both_of_them, DROP KEY names, COMMENT = '\n  PRIMARY KEY (`mutex`)',"
      " ADD UNIQUE KEY owners (owner_id) COMMENT '` (`mutex`)'"};
  for (const std::string& key : keys) {
    admin()("ALTER TABLE " + table + ' ' + key);
    EXPECT_THAT(error_of([&] { take(*open(), "report", "a~1"); }),
                AllOf(StartsWith("misconfigured"), HasSubstr("may hold a mutex twice"),
                      HasSubstr("ADD PRIMARY KEY (mutex)")))
        << key;
  }
  admin()("ALTER TABLE " + table + " ADD PRIMARY KEY (owner_id, mutex)");
  const std::string error = error_of([&] { take(*open(), "report", "a~1"); });
  ASSERT_THAT(error, HasSubstr("ALTER TABLE")) << "and what it says is what to do";
  admin()(error.substr(error.find("ALTER TABLE")));
  EXPECT_TRUE(can_take(*open()));
}

TEST_F(MysqlTroubleTest, ATableOfAnEngineThatCannotLockRows) {
  make_table();
  admin()("ALTER TABLE " + table + " ENGINE = MyISAM");
  const auto store = open();
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("myisam"), HasSubstr("ALTER TABLE"),
                    HasSubstr("ENGINE = InnoDB")));
  create_mysql_table(options());
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlTroubleTest, AContenderOnATableThatCannotLockRowsOwnsOnceItCan) {
  make_table();
  admin()("ALTER TABLE " + table + " ENGINE = MyISAM");
  const Afflicted contender(open());
  ASSERT_TRUE(eventually([&] { return contender.was_told("ENGINE = InnoDB"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  admin()("ALTER TABLE " + table + " ENGINE = InnoDB");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(MysqlTroubleTest, AContenderWhoseMutexHasARowOfAnotherSpellingOwnsOnceThatIsGone) {
  admin()(jvm_table_sql(table));
  take(*open(), "REPORT", "x~1");
  const Afflicted contender(open());
  ASSERT_TRUE(eventually([&] { return contender.was_logged("its row 'REPORT'"); }, kLongPatience));
  EXPECT_TRUE(contender.was_logged("VARBINARY(66)")) << "what to do";
  EXPECT_FALSE(contender.is_owner());
  EXPECT_EQ(row("REPORT", "owner_id"), "x~1");
  admin()("DELETE FROM " + table + " WHERE mutex = 'REPORT'");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(MysqlTroubleTest, AMissingPrivilegeAndAnObserverNeedsNone) {
  make_user();
  make_table();
  grant("SELECT");
  take(*open(), "held", "owner~1");
  const auto store = open(user);
  EXPECT_EQ(observe(*store, "held").owner.id, "owner~1");
  EXPECT_EQ(observe(*store, "unknown").owner, MutexOwner::none());
  EXPECT_EQ(store->list("", {}, 10, soon()).size(), 1U);
  const auto watch = store->watch("held", {}, [] {});
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("GRANT SELECT, INSERT, UPDATE"),
                    HasSubstr(table)));
  grant();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlTroubleTest, WhoWaitsAsAnotherUserIsNotRungButLooksByItself) {
  prepare_user();
  const auto waiter = open(), releaser = open(user);
  const Token token = take(*releaser, "report", "a~1").owner.token;
  std::atomic<int> wakes{0};
  const auto watch = waiter->watch("report", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  // The look that each sleep begins with, until nothing is new to it.
  ASSERT_TRUE(eventually([&] {
    wakes = 0;
    return admin()(
               "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' "
               "AND INFO LIKE '%" +
               table + "%'") == "1" &&
           wakes == 0;
  }));
  release(*releaser, "report", "a~1", token);
  EXPECT_EQ(log.count("waits as another user of the server"), 1U);
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "it polls, seldom, and does not look";
}

TEST_F(MysqlTroubleTest, AFullConnectionLimitLeavesRenewalsTheirConnection) {
  prepare_user("WITH MAX_USER_CONNECTIONS 3");
  const auto store = open(user);
  const Client client(store);
  Contender held(client, "held", steady_lease());
  ASSERT_TRUE(eventually([&] { return held.is_owner(); }));
  ASSERT_TRUE(eventually([&] { return count_connections("TRUE") >= 2; })) << "one in reserve";
  // Acquisitions that hang on a locked row take what they can get.
  take(*open(), "locked", "x~1");
  auto stranger = lock_row("locked");
  std::vector<std::jthread> hanging;
  for (int i = 0; i < 4; ++i) {
    hanging.emplace_back([&] {
      const Claim claim{"locked", "x~1", 0, 0, 10s, 6s};
      error_of([&] { store->contend({&claim, 1}, BootClock::now() + 10s); });
    });
  }
  ASSERT_TRUE(eventually([&] { return count_connections("TRUE") == 3; }));
  // Another process gets none, hears why, and goes on when there is room.
  const auto other = open(user, "connect_timeout=9");
  EXPECT_THAT(error_of([&] { take(*other, "more", "b~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("max_connections"),
                    HasSubstr("connections=")));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(held.is_renewed()) << "renewals had no connection";
  EXPECT_EQ(held.released(), 0);
  EXPECT_TRUE(held.is_in_ttl());
  stranger.reset();
  hanging.clear();
  admin()("ALTER USER " + user + " WITH MAX_USER_CONNECTIONS 0");
  EXPECT_TRUE(eventually([&] { return can_take(*other, "more"); }));
}

TEST_F(MysqlTroubleTest, ANetworkThatSwallowsAnswersMakesTermsNeitherLongerNorDouble) {
  const auto direct = open();
  servers::Relay relay(options().hosts.at(0).second);
  MysqlOptions through = options();
  through.hosts = {{"127.0.0.1", relay.port()}};
  const auto store = open_mysql(through);
  take(*store, "report", "a~1");
  relay.mute();  // the server acts, and nobody hears of it
  const Claim claim{"other", "a~2", 0, 0, 10s, 6s};
  const LocalTime began = BootClock::now();
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, began + 400ms);
              }),
              AllOf(StartsWith("the deadline passed"), HasSubstr("whether the server acted")));
  EXPECT_LT(BootClock::now() - began, 20s);
  ASSERT_TRUE(eventually([&] { return observe(*direct, "other").owner.id == "a~2"; }));
  const Token token = observe(*direct, "other").owner.token;
  relay.mend();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  EXPECT_EQ(observed(contend(*store, claim)).owner.token, token) << "asked again, it is the same";
}

TEST_F(MysqlTroubleTest, AnAltogetherLockedTableLeavesNoCrowdOfConnectionsBehind) {
  prepare_user();
  const auto store = open(user);
  take(*store, "report", "a~1");
  Admin stranger(options());
  stranger("LOCK TABLES " + table + " WRITE");
  for (int i = 0; i < 12; ++i) {
    const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
    const LocalTime began = BootClock::now();
    const Answer answer = [&]() -> Answer {
      try {
        return contend(*store, claim, began + 200ms);
      } catch (const Error& error) {
        return error;
      }
    }();
    EXPECT_FALSE(std::holds_alternative<Observation>(answer));
    EXPECT_LT(BootClock::now() - began, 10s);
  }
  EXPECT_TRUE(eventually([&] { return count_connections("TRUE") <= 8; }))
      << "the server's own limit did not end them";
  stranger("UNLOCK TABLES");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlTroubleTest, AServerThatIsSlowIsNotWaitedForAndNotLeftWithTheWork) {
  prepare_user();
  const auto store = open(user);
  take(*store, "other", "a~1");
  const std::string sleep = "DO SLEEP(1" + user.substr(1) + ")";  // no other case's
  admin()("CREATE TRIGGER slow_" + table + " BEFORE INSERT ON " + table + " FOR EACH ROW " + sleep);
  const auto is_at_work = [&] {
    return admin()("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = '" + sleep +
                   "'") != "0";
  };
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  const LocalTime began = BootClock::now();
  bool is_ended_by_the_server = false;  // MySQL has no such limit
  error_of([&] {
    is_ended_by_the_server = std::holds_alternative<Blocked>(contend(*store, claim, began + 8s));
  });
  EXPECT_LT(BootClock::now() - began, 30s);
  EXPECT_TRUE(is_ended_by_the_server || !is_mariadb());
  const Afflicted contender(open_elsewhere(user));
  ASSERT_TRUE(eventually(is_at_work));
  if (is_mariadb()) {
    EXPECT_TRUE(eventually([&] { return contender.was_logged("the server is slow"); }))
        << "nobody has the row locked";
  }
  EXPECT_FALSE(contender.is_owner());
  admin()("DROP TRIGGER slow_" + table);
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

// MariaDB 12 tells in words what was a number.
TEST_F(MysqlTroubleTest, ReadOnlyIsUnderstoodAsEachServerTellsIt) {
  for (const char* no : {"0", "'0'", "'OFF'", "FALSE", "@@global.read_only"}) {
    EXPECT_EQ(admin()("SELECT " + only_reads_sql(no)), "0") << no;
  }
  for (const char* yes : {"1", "'1'", "'ON'", "'NO_LOCK'", "'NO_LOCK_NO_ADMIN'", "TRUE"}) {
    EXPECT_EQ(admin()("SELECT " + only_reads_sql(yes)), "1") << yes;
  }
}

TEST_F(MysqlTroubleTest, AProgramThatIsStartedInheritsNoConnection) {
  Endpoint endpoint(options());
  const kit::StopSignal never;
  const Connection connection(endpoint, never);
  EXPECT_NE(fcntl(mysql_get_socket(connection.get()), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(MysqlTroubleTest, ADatabaseThatIsNotThere) {
  MysqlOptions there = options();
  there.database = "no_" + table;
  const auto store = open_mysql(there);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr(there.database),
                    HasSubstr("create the database")));
  // One that `_` would match as a pattern is another one.
  const std::string similar = "noX" + table;
  admin()("CREATE DATABASE " + similar);
  create_mysql_table(there);
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  admin()("DROP DATABASE " + there.database);
  admin()("DROP DATABASE " + similar);
}

TEST_F(MysqlTroubleTest, NobodyAtTheAddress) {
  MysqlOptions there = options();
  there.hosts = {{"127.0.0.1", 1}};
  EXPECT_THAT(error_of([&] { take(*open_mysql(there), "report", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("127.0.0.1:1")));
}

}  // namespace
}  // namespace simba::mysql
