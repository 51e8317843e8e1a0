#include <libpq-fe.h>

#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "simba/locker.h"
#include "stores/postgres/postgres_fixture.h"
#include "testing/servers/certificates.h"

// Servers of their own, which are killed, stopped, promoted, put behind a pooler or behind TLS.
namespace simba::postgres {
namespace {

using servers::PgBouncer;
using servers::PostgresServer;
using servers::PostgresSettings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(PostgresServerTest, AStandbyIsObservedAndContendedForOnceItIsPromoted) {
  start();
  take(*open(), "held", "owner~1");
  server->stop();
  server->become_standby();
  server->start();
  const auto store = open();
  EXPECT_EQ(observe(*store, "held").owner.id, "owner~1");
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("standby")));
  const Afflicted contender(open());
  ASSERT_TRUE(eventually([&] { return contender.was_told("standby"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  Admin admin(server->url());
  admin("SELECT pg_promote()");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience))
      << "it goes on by itself";
  EXPECT_TRUE(can_take(*store, "other"));
}

TEST_F(PostgresServerTest, AServerThatOnlyReadsFromNowOnIsLeftByAllConnections) {
  start();
  const auto store = open();
  take(*store, "held", "a~1");
  Admin admin(server->url()), stranger(server->url());
  const auto pids = [&](const std::string& condition) {
    return admin("SELECT string_agg(pid::text, ', ') FROM pg_stat_activity WHERE " + condition);
  };
  // Two at once, so that one stays idle while the other one hears of it.
  stranger("BEGIN");
  stranger("SELECT 1 FROM simba_mutex WHERE mutex = 'held' FOR UPDATE");
  std::vector<std::jthread> calls;
  for (int i = 0; i < 2; ++i) calls.emplace_back([&] { take(*store, "held", "a~1"); });
  std::string used;
  ASSERT_TRUE(eventually([&] {
    used = pids("wait_event_type = 'Lock'");
    return used.find(',') != used.npos;
  }));
  stranger("ROLLBACK");
  calls.clear();
  admin("ALTER SYSTEM SET default_transaction_read_only = on");
  admin("SELECT pg_reload_conf()");
  EXPECT_TRUE(eventually([&] {  // each of the server's processes hears of it for itself
    return error_of([&] { take(*store, "report", "a~1"); }).starts_with("the store denied");
  }));
  EXPECT_TRUE(eventually([&] { return pids("pid IN (" + used + ')').empty(); }))
      << "of several servers another one may write now";
}

TEST_F(PostgresServerTest, OfSeveralHostsTheOneThatWritesIsFound) {
  start();
  take(*open(), "held", "owner~1");
  PostgresServer standby;
  standby.become_standby();
  standby.start();
  const std::string url =
      "postgresql://postgres@127.0.0.1:1,127.0.0.1:" + std::to_string(standby.port()) +
      ",127.0.0.1:" + std::to_string(server->port()) + "/postgres?sslmode=disable";
  const auto store = open_postgres(options(url));
  EXPECT_EQ(take(*store, "held", "a~1").owner.id, "owner~1");
}

// Set while this lives.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads it yet
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : values_)
      unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const std::map<std::string, std::string> values_;
};

TEST_F(PostgresServerTest, OfTheHostsOfTheEnvironmentTheOneThatWritesIsFound) {
  start();
  take(*open(), "held", "owner~1");
  PostgresServer standby;
  standby.become_standby();
  standby.start();
  const servers::Port nobody;
  const Environment named(
      {{"PGHOST", "127.0.0.1,127.0.0.1,127.0.0.1"},
       {"PGPORT", std::to_string(nobody.number()) + ',' + std::to_string(standby.port()) + ',' +
                      std::to_string(server->port())},
       {"PGUSER", "postgres"}});
  const auto store = open_postgres(options("postgresql:///postgres?sslmode=disable"));
  EXPECT_EQ(take(*store, "held", "a~1").owner.id, "owner~1");
  EXPECT_TRUE(can_take(*store));
}

// After a failover: the one that wrote is gone, the one that did not is its successor.
TEST_F(PostgresServerTest, OfSeveralHostsTheOneThatWritesIsFoundAgainWhenItIsAnother) {
  start();
  PostgresServer successor;
  successor.become_standby();
  successor.start();
  const auto store = open_postgres(
      options("postgresql://postgres@127.0.0.1:" + std::to_string(server->port()) +
              ",127.0.0.1:" + std::to_string(successor.port()) + "/postgres?sslmode=disable"));
  ASSERT_TRUE(can_take(*store));
  server->crash();
  Admin admin(successor.url());
  admin("SELECT pg_promote()");
  EXPECT_TRUE(eventually([&] { return can_take(*store, "after"); }, kLongPatience));
  EXPECT_EQ(observe(*open_postgres(options(successor.url())), "after").owner.id, "a~1");
}

class PgBouncerTest : public PostgresServerTest {
 protected:
  void SetUp() override {
    PostgresServerTest::SetUp();
    if (IsSkipped()) return;
    try {
      servers::need_pgbouncer();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    start(settings());
    bouncer = std::make_unique<PgBouncer>(server->port(), 2);
    bouncer->start();
  }
  virtual PostgresSettings settings() const { return {}; }
  std::unique_ptr<PgBouncer> bouncer;
};

TEST_F(PgBouncerTest, IsDetectedSaidOnceAndWorksFromManyThreads) {
  const auto store = open_postgres(options(bouncer->url("connections=6")));
  std::vector<std::jthread> threads;
  std::atomic<int> owners{0}, granted{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, id = "t~" + std::to_string(i), own = "own-" + std::to_string(i)] {
      for (int round = 0; round < 40; ++round) {
        const std::string error = error_of([&] {
          release(*store, own, id, take(*store, own, id).owner.token);
          if (take(*store, "one", id).owner.id != id) return;
          EXPECT_EQ(owners.fetch_add(1), 0);
          ++granted;
          owners.fetch_sub(1);
          release(*store, "one", id);
        });
        EXPECT_TRUE(error == "none" || error.find("blocked") != error.npos) << error;
      }
    });
  }
  threads.clear();
  EXPECT_GT(granted, 0);
  EXPECT_EQ(log.count("a pooler answers instead of the server"), 1U);
  EXPECT_EQ(store->watch("one", {}, [] {}), nullptr) << "waiters poll";
  // Nothing of ours stays behind on connections that others get too: a transaction has one of them.
  Admin one(bouncer->url()), other(bouncer->url());
  for (Admin* each : {&one, &other}) {
    (*each)("BEGIN");
    EXPECT_EQ((*each)("SELECT count(*) FROM pg_prepared_statements"), "0");
    EXPECT_EQ((*each)("SHOW lock_timeout"), "0");
  }
  EXPECT_NE(one("SELECT pg_backend_pid()"), other("SELECT pg_backend_pid()"));
}

// The server's setting would lose what it answered in the last seconds.
class PostgresDurabilityTest : public PgBouncerTest {
 protected:
  PostgresSettings settings() const override {
    return {{{"synchronous_commit", "off"}, {"wal_writer_delay", "10000"}}, {}, false};
  }
  void expect_kept(const std::string& url, const std::vector<const char*>& mutexes) {
    std::vector<Claim> claims;
    for (const char* mutex : mutexes) claims.push_back({mutex, "owner~1", 0, 0, 10min, 10min});
    const auto store = open_postgres(options(url));
    const Token token = observed(store->contend(claims, soon()).at(0)).owner.token;
    server->crash();
    server->start();
    const auto after = open();
    const Observation seen = take(*after, "a", "rival~1");
    EXPECT_EQ(seen.owner.id, "owner~1") << "what was answered was forgotten";
    EXPECT_EQ(seen.owner.token, token);
  }
};

TEST_F(PostgresDurabilityTest, WhatWasAnsweredSurvivesACrashWhateverTheServersSetting) {
  expect_kept(server->url(), {"a"});
}

TEST_F(PostgresDurabilityTest, BehindAPoolerToo) { expect_kept(bouncer->url(), {"a", "b"}); }

// A release is not worth a flush: what a crash takes back is a lease that runs out.
TEST_F(PostgresDurabilityTest, OfAReleaseWhatFollowsItSurvivesACrash) {
  const auto store = open();
  const Token first = take(*store, "passed-on", "owner~1").owner.token;
  release(*store, "passed-on", "owner~1", first);
  const Token second = take(*store, "passed-on", "rival~1").owner.token;
  const Claim brief{"let-go", "owner~2", 0, 0, 1s, 1s};
  const Token third = observed(store->contend({&brief, 1}, soon()).at(0)).owner.token;
  release(*store, "let-go", "owner~2", third);
  server->crash();
  server->start();
  const auto after = open();
  const Observation seen = observe(*after, "passed-on");
  EXPECT_EQ(seen.owner.id, "rival~1");
  EXPECT_EQ(seen.owner.token, second);
  Observation next;
  ASSERT_TRUE(eventually([&] {
    next = take(*after, "let-go", "rival~2");
    return next.owner.id == "rival~2";
  }));
  EXPECT_GT(next.owner.token, third);
}

// From here on commits wait for this standby, or for none.
void wait_for_standby(Admin& admin, const PostgresServer& server, const std::string& name) {
  admin("ALTER SYSTEM SET synchronous_standby_names = '" + name + '\'');
  admin("SELECT pg_reload_conf()");
  ASSERT_TRUE(
      eventually([&] { return Admin(server.url())("SHOW synchronous_standby_names") == name; }));
  // Commits ask the checkpointer's word, which reads the settings before its next checkpoint.
  admin("CHECKPOINT");
}

TEST_F(PostgresServerTest, AReleaseWaitsForNoStandby) {
  start();
  const auto store = open();
  const Token token = take(*store, "held", "owner~1").owner.token;
  const std::vector<Claim> two{{"b", "owner~1", 0, 0, 10min, 10min},
                               {"c", "owner~1", 0, 0, 10min, 10min}};
  const Answers taken = store->contend(two, soon());
  Admin admin(server->url());
  ASSERT_NO_FATAL_FAILURE(wait_for_standby(admin, *server, "nobody"));
  const Claim other{"other", "a~1", 0, 0, 10s, 6s};
  ASSERT_THAT(error_of([&] { contend(*open(), other, BootClock::now() + 2s); }),
              HasSubstr("whether"))
      << "no standby is waited for";
  EXPECT_EQ(error_of([&] { release(*store, "held", "owner~1", token); }), "none");
  EXPECT_EQ(error_of([&] {
              std::vector<Claim> both = two;
              for (std::size_t i = 0; i < 2; ++i) both[i].token = observed(taken[i]).owner.token;
              store->release(both, soon());
            }),
            "none");
  for (const char* mutex : {"held", "b", "c"}) EXPECT_TRUE(observe(*store, mutex).is_free());
}

// Such a commit is acknowledged, with a warning, and on no standby: a failover would forget it.
TEST_F(PostgresServerTest, AClaimWhoseWaitForTheStandbyWasCancelledIsNoGrant) {
  start();
  const auto store = open();
  const Token token = take(*store, "held", "a~1").owner.token;
  Admin admin(server->url());
  admin("ALTER ROLE postgres SET client_min_messages = 'error'");
  const auto quiet = open();
  EXPECT_TRUE(can_take(*quiet, "other"));
  const auto cancelled = [&](const std::function<void()>& claim) {
    std::string error;
    std::jthread caller([&] { error = error_of(claim); });
    EXPECT_TRUE(eventually([&] {
      return admin(
                 "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = "
                 "'SyncRep'") == "t";
    }));
    caller.join();
    return error;
  };
  ASSERT_NO_FATAL_FAILURE(wait_for_standby(admin, *server, "nobody"));
  EXPECT_THAT(cancelled([&] { take(*store, "report", "a~1"); }), HasSubstr("standby"));
  EXPECT_THAT(cancelled([&] { renew(*store, "held", "a~1", token); }), HasSubstr("standby"));
  EXPECT_THAT(cancelled([&] { take(*quiet, "quiet", "a~1"); }), HasSubstr("standby"))
      << "warnings are off";
  ASSERT_NO_FATAL_FAILURE(wait_for_standby(admin, *server, ""));
  EXPECT_EQ(take(*store, "report", "a~1").owner.id, "a~1") << "the connection is good for more";
  EXPECT_EQ(renew(*store, "held", "a~1", token).owner.token, token);
}

// What a session holds belongs to whoever is lent its connection next, and ends with it.
TEST_F(PgBouncerTest, SessionLocksBehindAPoolerATermHangsOnNoConnection) {
  const auto store = open_postgres(options(bouncer->url()));
  const Token token = take(*store, "report", "a~1").owner.token;
  Admin admin(server->url());
  EXPECT_EQ(admin("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
  admin(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
      "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
  const auto rival = open_postgres(options(bouncer->url("application_name=rival")));
  ASSERT_TRUE(eventually([&] { return error_of([&] { observe(*rival, "report"); }) == "none"; }));
  EXPECT_EQ(take(*rival, "report", "b~1").owner.id, "a~1") << "the term went with its connection";
  ASSERT_TRUE(eventually([&] { return error_of([&] { observe(*store, "report"); }) == "none"; }));
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.token, token);
}

TEST_F(PgBouncerTest, WaitersPollOnceASecond) {
  const auto first = open_postgres(options(bouncer->url("application_name=first")));
  const auto second = open_postgres(options(bouncer->url("application_name=second")));
  const Client client(second);
  nanoseconds least = nanoseconds::max();
  for (int round = 0; round < 5 && least >= 4s; ++round) {  // a busy machine is late by chance
    ASSERT_TRUE(eventually([&] { return can_take(*first); }));
    const Contender waiter(client, "report", {});
    std::this_thread::sleep_for(300ms);
    const LocalTime began = BootClock::now();
    release(*first, "report", "a~1");
    ASSERT_TRUE(eventually([&] { return waiter.is_owner(); }));
    least = std::min<nanoseconds>(least, BootClock::now() - began);
  }
  EXPECT_LT(least, 4s) << "with push it would be five seconds";
}

TEST_F(PgBouncerTest, CanBeNamedInTheUrl) {
  const auto store = open_postgres(options(bouncer->url("pooler=transaction")));
  EXPECT_EQ(log.count("told that a transaction pooler"), 1U);
  EXPECT_EQ(store->watch("one", {}, [] {}), nullptr);
  EXPECT_TRUE(can_take(*store));
}

// A certificate authority, and a certificate of it for the address 127.0.0.1.
class PostgresTlsTest : public PostgresServerTest {
 protected:
  void SetUp() override {
    PostgresServerTest::SetUp();
    if (IsSkipped()) return;
    try {
      files = std::make_unique<servers::Certificates>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    files->make_authority("ca");
    files->make_authority("other-ca");
    files->make("server", "ca", "IP:127.0.0.1");
    files->make("elsewhere", "ca", "DNS:db.example.com");
  }

  void start_with(const std::string& certificate) {
    PostgresSettings settings;
    settings.config = {{"ssl", "on"}};
    settings.access = {"hostssl all all 127.0.0.1/32 trust"};
    server = std::make_unique<PostgresServer>(settings);
    server->add_file(files->certificate(certificate), "server.crt");
    server->add_file(files->key(certificate), "server.key");
    server->start();
  }
  // No word about TLS, but for what is given here.
  std::string url(const std::string& query = {}) const {
    return "postgresql://postgres@127.0.0.1:" + std::to_string(server->port()) + "/postgres" +
           (query.empty() ? "" : "?" + query);
  }
  std::string root(const std::string& name) const {
    return "sslrootcert=" + files->certificate(name).string();
  }
  std::string error_with(const std::string& query) const {
    return error_of([&] { take(*open_postgres(postgres_options(url(query))), "report", "a~1"); });
  }

  std::unique_ptr<servers::Certificates> files;
};

TEST_F(PostgresTlsTest, IsVerifiedInFullUnlessTheUrlSaysOtherwise) {
  start_with("server");
  // The environment weakens nothing. NOLINTNEXTLINE(concurrency-mt-unsafe)
  setenv("PGSSLMODE", "disable", 1);
  EXPECT_THAT(error_with("sslrootcert=/nonexistent"),
              AllOf(StartsWith("misconfigured"), HasSubstr("sslrootcert=FILE")));
  EXPECT_THAT(error_with(root("other-ca")),
              AllOf(StartsWith("misconfigured"), HasSubstr("certificate verify failed")));
  EXPECT_EQ(error_with(root("ca")), "none");
  EXPECT_EQ(error_with("sslmode=require"), "none");
  EXPECT_THAT(error_with("sslmode=disable"),
              AllOf(StartsWith("the store denied"), HasSubstr("pg_hba.conf")));
}

TEST_F(PostgresTlsTest, OfAnotherHostIsRefused) {
  start_with("elsewhere");
  EXPECT_THAT(error_with(root("ca")),
              AllOf(StartsWith("misconfigured"), HasSubstr("does not match host")));
  EXPECT_EQ(error_with(root("ca") + "&sslmode=verify-ca"), "none");
}

TEST_F(PostgresTlsTest, IsNotGivenUpForAServerWithoutIt) {
  start();
  EXPECT_THAT(error_with(root("ca")),
              AllOf(StartsWith("misconfigured"), HasSubstr("server does not support SSL")));
}

}  // namespace
}  // namespace simba::postgres
