#include <thread>

#include "stores/postgres/postgres_fixture.h"

// Trouble that an administrator can make and mend on a running server: each gives an error that
// says what to do, and calls succeed on the same store once it is over.
namespace simba::postgres {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using PostgresTroubleTest = PostgresTest;

TEST_F(PostgresTroubleTest, AWrongPassword) {
  if (!asks_for_passwords()) GTEST_SKIP() << "who needs a password is up to your server";
  prepare_user(with_password("right"));
  need_password();
  const auto store = open(user + ":canary-4711");
  const std::string error = error_of([&] { take(*store, "report", "a~1"); });
  EXPECT_THAT(error, AllOf(StartsWith("the store denied"), HasSubstr("password"),
                           HasSubstr("PGPASSWORD"), HasSubstr(user)));
  EXPECT_THAT(error, Not(HasSubstr("canary")));
  admin()("ALTER ROLE " + user + " PASSWORD 'canary-4711'");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  for (const std::string& line : log.all()) EXPECT_THAT(line, Not(HasSubstr("canary")));
}

TEST_F(PostgresTroubleTest, EachErrorNamesTheServerAndNoneThePassword) {
  make_user(with_password("canary-4711"));
  make_table();
  grant("SELECT");
  admin()("INSERT INTO " + table + " VALUES ('broken', 0, 0, 0, 'a~1', 1, -1)");
  const std::string there = url();
  const std::size_t from = there.find('@') + 1;
  const std::string where = "postgres at " + there.substr(from, there.find('?') - from);
  const auto store = open(user + ":canary-4711");
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  for (const std::string& error : {
           error_of([&] { take(*store, "report", "a~1"); }),
           error_of([&] { observe(*store, "broken"); }),
           error_of([&] {
             store->contend({&claim, 1}, BootClock::now() - 1ms);
           }),
       }) {
    EXPECT_THAT(error, AllOf(HasSubstr(where), Not(HasSubstr("canary"))));
  }
}

TEST_F(PostgresTroubleTest, AMissingTableThatTheRoleMayNotMake) {
  make_user();
  const auto store = open(user);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr(table), HasSubstr(user),
                    HasSubstr("CREATE TABLE"), HasSubstr("GRANT SELECT, INSERT, UPDATE")));
  make_table();
  grant();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(PostgresTroubleTest, ATableThatIsDroppedIsMadeAgain) {
  make_table();
  const auto store = open();
  const Token token = take(*store, "report", "a~1").owner.token;
  // No connection is under way any more, which would look for the table and make it.
  const std::string prepared = "state = 'idle' AND query LIKE '%" + table + "%'";
  ASSERT_TRUE(eventually([&] { return count_connections(prepared) == 2; }));
  admin()("DROP TABLE " + table);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), HasSubstr("the table is missing"));
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
  EXPECT_GT(observe(*store, "report").owner.token, token);
}

TEST_F(PostgresTroubleTest, AConnectionThatTheServerHasClosedIsNotUsedAgain) {
  const auto store = open();
  ASSERT_TRUE(can_take(*store));
  // No connection is being made any more.
  const std::string prepared = "state = 'idle' AND query LIKE '%" + table + "%'";
  ASSERT_TRUE(eventually([&] { return count_connections(prepared) == 2; }));
  cut_connections();
  ASSERT_TRUE(eventually([&] { return count_connections("TRUE") == 0; }));
  EXPECT_EQ(error_of([&] { take(*store, "report", "a~1"); }), "none") << "the server is up";
}

TEST_F(PostgresTroubleTest, ATableWithoutTokens) {
  make_table();
  admin()("ALTER TABLE " + table + " DROP COLUMN fencing_token");
  const auto store = open();
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"),
                    HasSubstr("ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0")));
  admin()("ALTER TABLE " + table + " ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(PostgresTroubleTest, AMissingPrivilegeAndAnObserverNeedsNone) {
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
  EXPECT_TRUE(can_take(*store)) << "the same connection can, now";
}

TEST_F(PostgresTroubleTest, AServerThatOnlyReads) {
  prepare_user("CONNECTION LIMIT 1");  // so that no other connection can help
  admin()("ALTER ROLE " + user + " SET default_transaction_read_only = on");
  const auto store = open(user);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("standby"),
                    HasSubstr("target_session_attrs=read-write")));
  EXPECT_TRUE(eventually([&] { return error_of([&] { observe(*store, "report"); }) == "none"; }));
  admin()("ALTER ROLE " + user + " RESET default_transaction_read_only");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

// The queue holds gigabytes, so a trigger says in its place what the server says of it: when a
// transaction that notifies commits.
TEST_F(PostgresTroubleTest, AFullQueueOfNotificationsHoldsUpReleasesAndNothingElse) {
  make_table();
  const auto store = open();
  const Claim brief{"brief", "a~1", 0, 0, 1s, 1s};
  const Claim lasting{"held", "a~1", 0, 0, 10min, 10min};
  const Token token = observed(store->contend({&lasting, 1}, soon()).at(0)).owner.token;
  const Token short_token = observed(store->contend({&brief, 1}, soon()).at(0)).owner.token;
  ASSERT_TRUE(eventually([&] { return count_connections("TRUE") > 1; })) << "one is in reserve";
  const std::string working = backends();
  admin()("CREATE FUNCTION " + table +
          "_full() RETURNS trigger LANGUAGE plpgsql AS "
          "$$ BEGIN RAISE EXCEPTION 'too many notifications in the NOTIFY queue' "
          "USING ERRCODE = '54000'; END $$");
  admin()("CREATE CONSTRAINT TRIGGER full_queue AFTER UPDATE ON " + table +
          " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.owner_id = '') "
          "EXECUTE FUNCTION " +
          table + "_full()");
  const auto is_advice =
      AllOf(StartsWith("the store cannot be reached"), HasSubstr("pg_notification_queue_usage()"),
            HasSubstr("pg_terminate_backend()"), HasSubstr("54000"));
  EXPECT_THAT(error_of([&] { release(*store, "brief", "a~1", short_token); }), is_advice);
  EXPECT_THAT(error_of([&] { release(*store, "held", "a~1", token); }), is_advice);
  EXPECT_THAT(error_of([&] {
                static_cast<void>(store->evict("held", "a~1", token, Eviction::kKeepLease, soon()));
              }),
              is_advice);
  EXPECT_EQ(
      admin()("SELECT bool_and(pid IN (SELECT pid FROM pg_stat_activity)) FROM unnest(ARRAY[" +
              working + "]) AS pid"),
      "t")
      << "connections that work were closed";
  EXPECT_EQ(renew(*store, "held", "a~1", token, 10min, 10min).owner.token, token);
  EXPECT_TRUE(eventually([&] { return take(*store, "brief", "b~1").owner.id == "b~1"; }))
      << "the lease runs out by itself";
  const Client client(store);
  {
    const Contender contender(client, "other", lease(1s, 1s));
    EXPECT_TRUE(eventually([&] { return contender.is_owner(); }));
  }
  const Contender next(client, "other", lease(1s, 1s));
  EXPECT_TRUE(eventually([&] { return next.is_owner(); })) << "contention goes on";
  admin()("DROP FUNCTION " + table + "_full() CASCADE");
  release(*store, "held", "a~1", token);
  EXPECT_TRUE(observe(*store, "held").is_free());
}

TEST_F(PostgresTroubleTest, AnOwnerWhoseServerOnlyReadsFromNowOnLosesItsTermInTime) {
  prepare_user();
  const Afflicted contender(open(user));
  ASSERT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
  admin()("ALTER ROLE " + user + " SET default_transaction_read_only = on");
  contender.expect_end("target_session_attrs=read-write", [&] { cut_connections(); });
  admin()("ALTER ROLE " + user + " RESET default_transaction_read_only");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(PostgresTroubleTest, AFullConnectionLimitLeavesRenewalsTheirConnection) {
  prepare_user("CONNECTION LIMIT 3");
  const auto store = open(user);
  const Client client(store);
  Contender held(client, "held", lease(5s, 3s));
  ASSERT_TRUE(eventually([&] { return held.is_owner(); }));
  ASSERT_TRUE(eventually([&] { return count_connections("TRUE") == 3; }))
      << "one for all, one in reserve, one that listens";
  // Acquisitions that hang on a locked row take what they can get.
  take(*open(), "locked", "x~1");
  const auto stranger = lock_row("locked");
  std::vector<std::jthread> hanging;
  for (int i = 0; i < 4; ++i) {
    hanging.emplace_back([&] {
      const Claim claim{"locked", "x~1", 0, 0, 10s, 6s};
      error_of([&] { store->contend({&claim, 1}, BootClock::now() + 10s); });
    });
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(held.is_renewed()) << "renewals had no connection";
  EXPECT_EQ(held.released(), 0);
  EXPECT_TRUE(held.is_in_ttl());
  hanging.clear();
  // Another process gets none, hears why, and goes on when there is room. Calls that timed out may
  // have cost connections, whose places would be free.
  admin()("ALTER ROLE " + user + " CONNECTION LIMIT 0");
  const auto other = open(user, "application_name=other");
  EXPECT_THAT(error_of([&] { take(*other, "more", "b~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("max_connections"),
                    HasSubstr("connections=")));
  admin()("ALTER ROLE " + user + " CONNECTION LIMIT -1");
  EXPECT_TRUE(eventually([&] { return can_take(*other, "more"); }));
}

TEST_F(PostgresTroubleTest, AnAltogetherLockedTableLeavesNoCrowdOfConnectionsBehind) {
  const auto store = open();
  take(*store, "report", "a~1");
  Admin stranger(options().conninfo);
  stranger("BEGIN");
  stranger("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE");
  // On a connection that is open already the server's limit is below the deadline: it ends the wait
  // itself, and nothing is in doubt. A new one would wait for the table before it is prepared.
  EXPECT_THAT(error_of([&] {
                const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
                store->contend({&claim, 1}, BootClock::now() + 8s);
              }),
              HasSubstr("the server cancelled the statement; nothing was changed"));
  for (int i = 0; i < 12; ++i) {
    const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
    const LocalTime began = BootClock::now();
    EXPECT_THAT(error_of([&] {
                  store->contend({&claim, 1}, began + 150ms);
                }),
                StartsWith("the deadline passed"));
    EXPECT_LT(BootClock::now() - began, 10s);
  }
  // The server looks whether its clients are still there.
  EXPECT_TRUE(eventually([&] { return count_connections("wait_event_type = 'Lock'") <= 2; }));
  stranger("COMMIT");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(PostgresTroubleTest, ADatabaseThatCannotHoldEveryName) {
  const std::string name = table + "_latin1";
  admin()("CREATE DATABASE " + name + " ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  std::string there = url();
  const std::size_t query = there.find('?'), slash = there.rfind('/', query);
  there.replace(slash + 1, query - slash - 1, name);
  EXPECT_THAT(error_of([&] { take(*open_postgres(postgres_options(there)), "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("LATIN1"), HasSubstr("UTF8")));
  ASSERT_TRUE(eventually([&] {
    try {
      admin()("DROP DATABASE IF EXISTS " + name);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }));
}

TEST_F(PostgresTroubleTest, ADatabaseThatIsNotThere) {
  std::string there = url();
  const std::size_t query = there.find('?'), slash = there.rfind('/', query);
  there.replace(slash + 1, query - slash - 1, "no_such_database");
  EXPECT_THAT(error_of([&] { take(*open_postgres(postgres_options(there)), "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("no_such_database"),
                    HasSubstr("create the database")));
}

}  // namespace
}  // namespace simba::postgres
