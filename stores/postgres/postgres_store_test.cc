#include <libpq-fe.h>

#include <sstream>
#include <thread>

#include "stores/postgres/connection.h"
#include "stores/postgres/postgres_fixture.h"
#include "stores/postgres/schema.h"
#include "stores/postgres/statements.h"

// What this store does with its table, on a real server.
namespace simba::postgres {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using PostgresStoreTest = PostgresTest;

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

// That of the statement's start: else what a reader that stands still gets late looks expired.
TEST_F(PostgresStoreTest, AllRowsOfAListAreOfOneTime) {
  const auto store = open();
  make_table();
  admin()("INSERT INTO " + table +
          " SELECT 'mutex-' || i, 0, 0, 0, 'a~1', 1, 1 FROM generate_series(1, 20000) i");
  const std::vector<Listed> all = store->list("mutex-", {}, 20'000, soon());
  ASSERT_EQ(all.size(), 20'000U);
  EXPECT_EQ(all.front().observation.now, all.back().observation.now);
}

// A cursor shows the table as it was when it was declared, as a statement does that was bound and
// is executed later.
TEST_F(PostgresStoreTest, NoRowThatIsReadIsOlderThanTheTimeItComesWith) {
  take(*open(), "report", "a~1");
  const std::vector<Statement> ours = make_statements(Endpoint(options()));
  const auto with = [](std::string sql, const std::vector<std::string>& values) {
    for (std::size_t i = values.size(); i > 0; --i) {
      const std::string name = '$' + std::to_string(i);
      for (std::size_t at = 0; (at = sql.find(name, at)) != sql.npos; at += values[i - 1].size()) {
        sql.replace(at, name.size(), values[i - 1]);
      }
    }
    return sql;
  };
  for (const std::string& sql :
       {with(ours[kObserve].sql, {"ARRAY['report']"}),
        with(ours[kList].sql, {"'report'", "'report~'", "'report'", "10"})}) {
    Admin reader(options().conninfo);
    reader("BEGIN");
    reader("DECLARE rows CURSOR FOR " + sql);
    const std::int64_t declared = std::stoll(reader(std::string("SELECT ") + kNowMs));
    reader("SELECT pg_sleep(0.05)");
    std::istringstream row(reader("FETCH ALL FROM rows"));
    std::string column;
    for (int i = 0; i < 6; ++i) std::getline(row, column, '|');
    EXPECT_LE(std::stoll(column), declared) << sql;
  }
}

TEST_F(PostgresStoreTest, StoresOfOneProcessShareOneListeningConnection) {
  const auto first = open(), second = open();
  const auto a = first->watch("report", {}, [] {});
  const auto b = second->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return a->is_live() && b->is_live(); }));
  EXPECT_EQ(count_connections("query LIKE 'LISTEN%'"), 1);
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

TEST_F(PostgresStoreTest, TheServersLimitIsBelowTheDeadlineOfEachCall) {
  const std::vector<Statement> ours{
      {"ask",
       "SELECT (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint",
       {}},
      {"fail", "SELECT 1 / (length(current_setting('statement_timeout')) * 0)", {}}};
  Endpoint endpoint(options());
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  connection.prepare("SELECT 1", ours, soon());
  const auto limit_in = [&](milliseconds span) {
    return milliseconds{connection.run(ours[0], {}, BootClock::now() + span).number(0, 0)};
  };
  for (const milliseconds span : {80s, 40s, 41s, 160s, 42s}) {
    const milliseconds limit = limit_in(span);
    EXPECT_LT(limit, span);
    EXPECT_GT(limit, span * 3 / 4) << "it would end before a wait for a row does";
  }
  const milliseconds limit = limit_in(80s);
  EXPECT_EQ(limit_in(81s), limit) << "set anew for a call of a like deadline";
  // What fails takes its limit with it.
  EXPECT_NE(error_of([&] { connection.run(ours[1], {}, BootClock::now() + 200s); }), "none");
  EXPECT_GT(limit_in(200s), 150s);
}

// Each row tells the transaction that wrote it, and which of its statements.
TEST_F(PostgresStoreTest, ABatchOfClaimsIsOneStatement) {
  const auto store = open();
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("batch-" + std::to_string(100 + i));
  std::vector<Claim> claims;
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 10min, 10min});
  const auto statements = [&](const std::string& owner) {
    return admin()("SELECT count(*), count(DISTINCT (xmin::text, cmin::text)) FROM " + table +
                   " WHERE owner_id = '" + owner + "'");
  };
  const auto send = [&] {
    const Answers answers = store->contend(claims, soon());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      claims[i].token = observed(answers.at(i)).owner.token;
    }
  };
  send();
  EXPECT_EQ(statements("a~1"), "40|1") << "new ones";
  const std::string taken = writes();
  send();
  EXPECT_EQ(statements("a~1"), "40|1") << "renewals";
  EXPECT_NE(writes(), taken);
  store->release(claims, soon());
  EXPECT_EQ(statements(""), "40|1") << "releases";
  for (Claim& claim : claims) claim = {claim.mutex, "b~1", 0, 0, 10min, 10min};
  send();
  EXPECT_EQ(statements("b~1"), "40|1") << "free ones";
}

// What a server that does not run on Linux calls itself is shown by a function of that name.
TEST_F(PostgresStoreTest, TheServerLooksForItsClientWhereItsSystemCanTell) {
  if (std::stoi(admin()("SHOW server_version_num")) < 140'000) GTEST_SKIP() << "not before 14";
  make_user();
  const std::string schema = table + "_elsewhere";
  const auto interval = [&] {
    Endpoint endpoint(options(user));
    const kit::StopSignal never;
    Connection connection(endpoint, never);
    prepare_connection(connection, {}, soon());
    return std::string(
        connection.execute("SHOW client_connection_check_interval", soon()).text(0, 0));
  };
  const bool is_linux = admin()("SELECT version() LIKE '%linux%'") == "t";
  EXPECT_EQ(interval(), is_linux ? "1s" : "0");
  admin()("CREATE SCHEMA " + schema);
  admin()("GRANT USAGE ON SCHEMA " + schema + " TO " + user);
  admin()("CREATE FUNCTION " + schema + ".version() RETURNS text STABLE LANGUAGE sql AS " +
          "$$ SELECT 'PostgreSQL 17.2 on x86_64-windows, compiled by msvc-19.42.34435' $$");
  admin()("ALTER ROLE " + user + " SET search_path = " + schema + ", pg_catalog, public");
  EXPECT_EQ(interval(), "0");
  admin()("DROP SCHEMA " + schema + " CASCADE");
}

// The rows of an answer come before the commit, which may still fail: a deferred constraint here, a
// conflict where transactions are serializable behind a pooler.
TEST_F(PostgresStoreTest, AGrantWhoseCommitFailsIsNone) {
  make_table();
  const auto store = open({}, "pooler=transaction");
  const Token token = take(*store, "held", "a~1").owner.token;
  admin()("CREATE FUNCTION " + table +
          "_refuse() RETURNS trigger LANGUAGE plpgsql AS "
          "$$ BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = '40001'; END $$");
  admin()("CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON " + table +
          " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + table + "_refuse()");
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), HasSubstr("not today"));
  EXPECT_THAT(error_of([&] { renew(*store, "held", "a~1", token); }), HasSubstr("not today"));
  EXPECT_THAT(error_of([&] { take(*open(), "report", "b~1"); }), HasSubstr("not today"));
  EXPECT_EQ(row("report", "owner_id"), "");
  admin()("DROP FUNCTION " + table + "_refuse() CASCADE");
  EXPECT_EQ(take(*store, "report", "a~1").owner.id, "a~1");
}

TEST_F(PostgresStoreTest, ContendsInATableOfASchema) {
  const std::string schema = table + "_schema";
  admin()("CREATE SCHEMA " + schema);
  const auto open_there = [&](const std::string& name) {
    PostgresOptions there = options({}, "application_name=" + table + name);
    there.table = schema + ".locks";
    return open_postgres(there);
  };
  const auto store = open_there("first"), other = open_there("second");
  std::vector<Claim> claims{{"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~1", 0, 0, 10s, 6s}};
  const Answers taken = store->contend(claims, soon());  // it makes the table
  for (std::size_t i = 0; i < 2; ++i) claims[i].token = observed(taken[i]).owner.token;
  EXPECT_EQ(take(*other, "a", "y~1").owner.id, "x~1");
  EXPECT_EQ(renew(*store, "a", "x~1", claims[0].token).owner.id, "x~1");
  EXPECT_EQ(observed(store->contend(claims, soon()).at(1)).owner.token, claims[1].token);
  EXPECT_EQ(other->list("", "", 10, soon()).size(), 2U);
  EXPECT_EQ(admin()("SELECT count(*) FROM " + schema + ".locks"), "2");
  std::atomic<int> wakes{0};
  const auto watch = other->watch("a", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live() && wakes > 0; }));
  wakes = 0;
  store->release(claims, soon());
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "the channel has another name";
  EXPECT_EQ(take(*other, "a", "y~1").owner.id, "y~1");
  admin()("DROP SCHEMA " + schema + " CASCADE");
}

TEST_F(PostgresStoreTest, WhoWaitsAloneHearsOnItsOwnThread) {
  const auto owner = open_elsewhere(), waiting = open();
  std::atomic<std::thread::id> on;
  const auto watch = waiting->watch("report", {}, [&] { on = std::this_thread::get_id(); });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  watch->need_reader(false);
  const kit::StopSignal interrupt;
  EXPECT_TRUE(eventually([&] {
    take(*owner, "report", "a~1");
    release(*owner, "report", "a~1");
    return watch->listen(interrupt.descriptor(), BootClock::now() + 100ms) &&
           on.load() == std::this_thread::get_id();
  }));
  watch->need_reader(true);
  EXPECT_FALSE(watch->listen(interrupt.descriptor(), BootClock::now() + 100ms));
  on = std::thread::id{};
  take(*owner, "report", "a~1");
  release(*owner, "report", "a~1");
  EXPECT_TRUE(eventually([&] { return on.load() != std::thread::id{}; })) << "the reader hears it";
  EXPECT_NE(on.load(), std::this_thread::get_id());
}

TEST_F(PostgresStoreTest, IsNotMisledByTheRolesSettings) {
  prepare_user();
  admin()("ALTER ROLE " + user + " SET default_transaction_isolation = 'serializable'");
  admin()("ALTER ROLE " + user + " SET synchronous_commit = off");
  admin()("ALTER ROLE " + user + " SET timezone = 'Europe/Berlin'");
  const auto store = open(user);
  release(*store, "one", "a~1", take(*store, "one", "a~1").owner.token);
  // What changes while a claim waits is no conflict: it looks at the row as it is then.
  auto stranger = lock_row("one");
  std::string error;
  std::jthread taker([&] { error = error_of([&] { take(*store, "one", "b~1"); }); });
  ASSERT_TRUE(eventually([&] { return somebody_waits_for_a_row(); }));
  (*stranger)("UPDATE " + table + " SET version = 77");
  (*stranger)("COMMIT");
  taker.join();
  EXPECT_EQ(error, "none");
  EXPECT_EQ(row("one", "owner_id, version"), "b~1|78");
}

}  // namespace
}  // namespace simba::postgres
