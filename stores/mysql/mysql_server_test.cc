#include <cstdlib>
#include <ctime>
#include <thread>

#include "stores/mysql/mysql_fixture.h"
#include "stores/mysql/schema.h"
#include "testing/servers/certificates.h"
#include "testing/servers/relay.h"

// Servers of their own, which are killed, stopped, made to read only, put behind TLS or into
// another time zone.
namespace simba::mysql {
namespace {

using servers::MariadbServer;
using servers::MariadbSettings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(MysqlServerTest, AServerThatOnlyReadsIsObservedAndOfSeveralTheOneThatWritesIsFound) {
  start();
  Admin admin(server->url());
  admin("CREATE USER plain");
  admin("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO plain");
  const auto store = open("plain");
  take(*store, "held", "owner~1");
  admin("SET GLOBAL read_only = ON");
  EXPECT_EQ(observe(*store, "held").owner.id, "owner~1");
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("replica"), HasSubstr("primary")));
  MariadbServer writer;
  writer.start();
  MysqlOptions both = options(server->url("admin"));
  both.hosts = {{"127.0.0.1", 1}, {"127.0.0.1", server->port()}, {"127.0.0.1", writer.port()}};
  both.tls = MysqlOptions::Tls::kDisable;  // each has a certificate of its own
  EXPECT_TRUE(can_take(*open_mysql(both)));
  EXPECT_EQ(Admin(writer.url())("SELECT owner_id FROM simba_mutex WHERE mutex = 'report'"), "a~1");
  const Afflicted contender(open("plain"));
  ASSERT_TRUE(eventually([&] { return contender.was_told("replica"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  admin("SET GLOBAL read_only = OFF");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience))
      << "it goes on by itself";
  EXPECT_TRUE(can_take(*store, "other"));
}

// Nobody rings there: whoever releases does it on another server, or not at all.
TEST_F(MysqlServerTest, WhoWaitsOnAServerThatOnlyReadsPollsUntilItWritesAgain) {
  start();
  Admin admin(server->url());
  const auto early = open(), late = open();
  const auto watch = early->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  admin("SET GLOBAL read_only = ON");
  EXPECT_TRUE(eventually([&] { return !watch->is_live(); })) << "it waits for a ring";
  const auto another = late->watch("another", {}, [] {});
  EXPECT_TRUE(eventually([&] { return log.count("the server only reads") == 2; }))
      << "once for each process";
  EXPECT_FALSE(watch->is_live() || another->is_live());
  admin("SET GLOBAL read_only = OFF");
  EXPECT_TRUE(eventually([&] { return watch->is_live() && another->is_live(); }));
}

// read_only does not bind those who may override it.
TEST_F(MysqlServerTest, AReplicaGrantsNothingToAnybodyWhateverHisRights) {
  start();
  const Observation held = take(*open(), "held", "owner~1");
  Admin admin(server->url());
  const std::string all = "SELECT GROUP_CONCAT(mutex, owner_id, ttl_at, version) FROM simba_mutex";
  const std::string before = admin(all);
  for (const std::string how : {"dialect=detect", "dialect=mysql"}) {
    SCOPED_TRACE(how);
    // One that was demoted, one that is the only host, one of several.
    const auto demoted = open("admin", how);
    observe(*demoted, "held");
    admin("SET GLOBAL read_only = ON");
    MysqlOptions both = options(server->url("admin", how));
    both.hosts = {{"127.0.0.1", 1}, {"127.0.0.1", server->port()}};
    const auto several = open_mysql(both);
    for (const auto& store : {demoted, open("admin", how), several}) {
      // Of several another one may write in a moment.
      const auto refused =
          StartsWith(store == several ? "the store cannot be reached" : "the store denied");
      EXPECT_EQ(observe(*store, "held").owner.id, "owner~1");
      EXPECT_EQ(store->list("", {}, 10, soon()).size(), 1U);
      const auto error_with = [&](const std::vector<Claim>& claims) {
        return error_of([&] { store->contend(claims, soon()); });
      };
      EXPECT_THAT(error_with({{"report", "a~1", 0, 0, 10s, 6s}}),
                  AllOf(refused, HasSubstr("replica"), HasSubstr("primary")));
      EXPECT_THAT(error_with({{"x", "a~1", 0, 0, 10s, 6s}, {"y", "a~1", 0, 0, 10s, 6s}}), refused);
      const Claim term{"held", "owner~1", held.owner.token, 0, 10s, 6s};
      EXPECT_THAT(error_with({term}), refused);
      EXPECT_THAT(error_of([&] { store->release({&term, 1}, soon()); }), refused);
      for (const Eviction evicts : {Eviction::kKeepLease, Eviction::kFreeNow}) {
        EXPECT_THAT(
            error_of([&] { store->evict("held", "owner~1", held.owner.token, evicts, soon()); }),
            refused);
      }
      EXPECT_EQ(admin(all), before);
    }
    const auto store = open_mysql(both);
    observe(*store, "held");
    admin("SET GLOBAL read_only = OFF");
    EXPECT_TRUE(eventually([&] { return can_take(*store); })) << "a failover is found";
    admin("DELETE FROM simba_mutex WHERE mutex = 'report'");
  }
}

// The connection was made while it wrote: only the statement itself can tell.
TEST_F(MysqlServerTest, ADemotedServerRefusesTheFirstRenewalAndTheFirstReleaseThatItHears) {
  start();
  Admin admin(server->url());
  const std::string all = "SELECT GROUP_CONCAT(mutex, owner_id, ttl_at, version) FROM simba_mutex";
  for (const std::string how : {"dialect=detect", "dialect=mysql"}) {
    for (const bool renews : {true, false}) {
      SCOPED_TRACE(how + (renews ? ", a renewal" : ", a release"));
      const auto store = open("admin", how);
      const Token token = take(*store, "held", "a~1").owner.token;
      const Claim term{"held", "a~1", token, 0, 10s, 6s};
      const std::string before = admin(all);
      admin("SET GLOBAL read_only = ON");
      EXPECT_THAT(
          error_of([&] {
            renews ? store->contend({&term, 1}, soon()) : store->release({&term, 1}, soon());
          }),
          StartsWith("the store denied"));
      EXPECT_EQ(admin(all), before);
      admin("SET GLOBAL read_only = OFF");
      EXPECT_TRUE(eventually([&] {
        return error_of([&] { renew(*store, "held", "a~1", token); }) == "none";
      })) << "a failover is found";
      release(*store, "held", "a~1", token);
    }
  }
}

TEST_F(MysqlServerTest, WhereNoPreparedStatementIsLeftTermsGoOnAndItIsSaidWhatToRaise) {
  start();
  Admin admin(server->url());
  const auto store = open();
  const Client client(store);
  const Contender owner(client, "held", steady_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner() && owner.is_renewed(); }));
  admin("SET GLOBAL max_prepared_stmt_count = 0");
  EXPECT_THAT(
      error_of([&] { observe(*open(), "report"); }),
      AllOf(StartsWith("the store cannot be reached"), HasSubstr("raise max_prepared_stmt_count")));
  EXPECT_THAT(error_of([&] { observe(*store, "held"); }), HasSubstr("max_prepared_stmt_count"));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(owner.is_renewed()) << "it has lost what it had";
  EXPECT_EQ(owner.released(), 0);
  admin("SET GLOBAL max_prepared_stmt_count = 1000");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlServerTest, ALogOfStatementsIsRefusedBecauseItCannotRepeatAClock) {
  start({.config = {{"log-bin", "bin"}, {"binlog-format", "STATEMENT"}, {"server-id", "1"}},
         .environment = {}});
  const auto store = open();
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("MIXED or ROW")));
  Admin(server->url())("SET GLOBAL binlog_format = 'MIXED'");
  server->restart();  // connections keep the format they began with
  server->stop();
  server->configure("binlog-format", "MIXED");
  server->start();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

// The hour that comes twice: at 00:30 and at 01:30 UTC it is 02:30 there.
TEST_F(MysqlServerTest, InTheHourThatComesTwiceTimesAreRight) {
  constexpr std::int64_t kFirst = 1'792'888'200;  // 2026-10-25 00:30 UTC
  int misled = 0;
  for (const std::int64_t when : {kFirst, kFirst + 3'600}) {
    const std::int64_t shift = when - std::time(nullptr);
    start({.config = {},
           .environment = {"TZ=CET-1CEST,M3.5.0,M10.5.0/3", "LD_PRELOAD=" SIMBA_SHIFT_CLOCK,
                           "SIMBA_TEST_CLOCK_SHIFT=" + std::to_string(shift)}});
    const auto off = [&](std::int64_t seconds) {
      return std::abs(seconds - (std::time(nullptr) + shift));
    };
    Admin theirs(server->url());  // in the server's zone, as a JVM contender without care
    misled += off(std::stoll(theirs("SELECT FLOOR(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(3)))"))) > 1'800;
    const Observation held = take(*open(), "report", "a~1");
    EXPECT_LT(off(held.now.time_since_epoch().count() / 1'000), 60);
    EXPECT_LT(off(held.owner.acquired_at->time_since_epoch().count() / 1'000), 60);
    EXPECT_LT(off(static_cast<std::int64_t>(held.owner.token / 1'000'000)), 60);
  }
  EXPECT_EQ(misled, 1) << "the trap is not there, and this test shows nothing";
}

// Beyond it, as somebody sets it for those who ask too much: in a sleep nobody does.
TEST_F(MysqlServerTest, ALimitForEverybodysStatementsWakesNobodyWhoWaits) {
  start();
  Admin admin(server->url());
  admin(is_mysql() ? "SET GLOBAL max_execution_time = 100" : "SET GLOBAL max_statement_time = 0.1");
  const auto waits_for_a_second = [&](const std::string& how) {
    return admin("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = '" + how +
                 "' AND TIME > 0") == "1";
  };
  for (const std::string how : {"dialect=detect", "dialect=mysql"}) {
    SCOPED_TRACE(how);
    const auto sleeper = open("admin", how), store = open("admin", how);
    const auto first = sleeper->watch("another", {}, [] {});
    EXPECT_TRUE(eventually([&] { return waits_for_a_second("User sleep"); }));
    const auto watch = store->watch("report", {}, [] {});
    EXPECT_TRUE(eventually([&] { return waits_for_a_second("User lock"); })) << "at the gate";
    EXPECT_EQ(log.count("waiters poll until this is over"), 0U);
  }
}

TEST_F(MysqlServerTest, AllRowsOfAnAnswerComeWhateverIsUsualThere) {
  start();
  Admin(server->url())("SET GLOBAL sql_select_limit = 2");
  const auto store = open();
  const std::vector<Claim> takes{
      {"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~1", 0, 0, 10s, 6s}, {"c", "x~1", 0, 0, 10s, 6s}};
  for (const Answer& each : store->contend(takes, soon())) {
    EXPECT_EQ(observed(each).owner.id, "x~1");
  }
  const std::vector<std::string_view> names{"a", "b", "c"};
  for (const Answer& each : store->observe(names, soon())) {
    EXPECT_EQ(observed(each).owner.id, "x~1");
  }
}

TEST_F(MysqlServerTest, ATableIsKnownAsWhatItIsWhateverTheServerShowsOfIt) {
  if (is_mysql()) GTEST_SKIP() << "only MariaDB leaves the engine out";
  start({.config = {{"sql-mode", "ORACLE"}}, .environment = {}});
  const MysqlOptions there = options(server->url());
  EXPECT_THAT(create_mysql_table(there), HasSubstr("CREATE TABLE"));
  EXPECT_EQ(create_mysql_table(there), "");
  EXPECT_TRUE(can_take(*open_mysql(there)));
}

TEST_F(MysqlServerTest, ATablesKeyIsFoundAlsoWhereTheServerQuotesNoNames) {
  start();
  const MysqlOptions there = options(server->url());
  create_mysql_table(there);
  Admin(server->url())("SET GLOBAL sql_quote_show_create = OFF");
  Endpoint endpoint(there);
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  prepare_connection(connection, soon());
  EXPECT_TRUE(connection.statements().shape.has_primary_key);
  Admin(server->url())("ALTER TABLE simba_mutex DROP PRIMARY KEY, ADD UNIQUE KEY one_each (mutex)");
  EXPECT_TRUE(can_take(*open_mysql(there)));
}

TEST_F(MysqlServerTest,
       WhoWaitsForNothingAnyMoreKeepsItsConnectionForLongerThanTheServerLetsOthers) {
  start();
  Admin admin(server->url());
  admin("SET GLOBAL wait_timeout = 2");
  const auto store = open();
  auto watch = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  const std::size_t lines = log.all().size();
  watch.reset();
  EXPECT_TRUE(eventually([&] {
    return admin(
               "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep' "
               "AND TIME > 4") != "0";
  }));
  EXPECT_EQ(log.all().size(), lines);
}

TEST_F(MysqlServerTest, AServerInOfflineModeIsOutOfReachUntilItIsBack) {
  if (!is_mysql()) GTEST_SKIP() << "MariaDB has no such mode";
  start();
  Admin admin(server->url());
  admin("CREATE USER plain");
  admin("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO plain");
  const Afflicted contender(open("plain"));
  ASSERT_TRUE(eventually([&] { return contender.is_owner(); }));
  admin("SET GLOBAL offline_mode = ON");
  EXPECT_TRUE(eventually([&] { return contender.was_told("offline mode"); }, kLongPatience));
  EXPECT_THAT(error_of([&] { take(*open("plain"), "report", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("administrators")));
  admin("SET GLOBAL offline_mode = OFF");
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(MysqlServerTest, ADatabaseThatOnlyReadsIsObservedAndGrantsNothing) {
  if (!is_mysql()) GTEST_SKIP() << "MariaDB has no such databases";
  start();
  Admin admin(server->url());
  const auto store = open();
  const Observation held = take(*store, "held", "owner~1");
  admin("ALTER DATABASE simba_db READ ONLY = 1");
  const auto is_refused = AllOf(StartsWith("the store denied"), HasSubstr("READ ONLY = 0"));
  EXPECT_EQ(observe(*store, "held").owner.id, "owner~1");
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), is_refused);
  EXPECT_THAT(error_of([&] { renew(*store, "held", "owner~1", held.owner.token); }), is_refused);
  EXPECT_THAT(error_of([&] { release(*store, "held", "owner~1", held.owner.token); }), is_refused);
  const std::vector<Claim> batch{{"x", "a~1", 0, 0, 10s, 6s}, {"y", "a~1", 0, 0, 10s, 6s}};
  EXPECT_THAT(error_of([&] { store->contend(batch, soon()); }), is_refused);
  admin("ALTER DATABASE simba_db READ ONLY = 0");
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

TEST_F(MysqlServerTest, AuthenticatesByEachPluginOfTheServer) {
  if (is_mysql()) GTEST_SKIP() << "these are MariaDB's";
  start({.config = {{"plugin-load-add", "auth_ed25519"}}, .environment = {}});
  Admin admin(server->url());
  admin("CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('secret')");
  admin("CREATE USER modern IDENTIFIED VIA ed25519 USING PASSWORD('secret')");
  for (const std::string user : {"native", "modern"}) {
    admin("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO " + user);
    EXPECT_TRUE(can_take(*open(user + ":secret"), user));
    EXPECT_THAT(error_of([&] { take(*open(user + ":wrong"), user, "x~1"); }),
                StartsWith("the store denied"));
  }
  setenv("MYSQL_PWD", "secret", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(can_take(*open("native"), "by-environment"));
  unsetenv("MYSQL_PWD");  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(MysqlServerTest, AUnixSocketNeedsNoTls) {
  start();
  MysqlOptions local = mysql_options("mysql://admin@/simba_db?socket=" + server->socket().string());
  EXPECT_EQ(local.tls, MysqlOptions::Tls::kVerify);
  EXPECT_TRUE(can_take(*open_mysql(local)));
}

// A certificate authority, and a certificate of it for the address 127.0.0.1.
class MysqlTlsTest : public MysqlServerTest {
 protected:
  void SetUp() override {
    MysqlServerTest::SetUp();
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
    files->make("client", "ca", "DNS:client");
  }
  void start_with(const std::string& certificate,
                  const std::map<std::string, std::string>& config = {}) {
    server = std::make_unique<MariadbServer>(MariadbSettings{.config = config, .environment = {}});
    const auto add = [&](const std::filesystem::path& file) {
      return server->add_file(file, file.filename()).string();
    };
    server->configure("ssl-ca", add(files->certificate("ca")));
    server->configure("ssl-cert", add(files->certificate(certificate)));
    server->configure("ssl-key", add(files->key(certificate)));
    server->start();
  }
  // No word about TLS, but for what is given here.
  std::string url(const std::string& query = {}, const std::string& user = "admin") const {
    return "mysql://" + user + "@127.0.0.1:" + std::to_string(server->port()) + "/simba_db" +
           (query.empty() ? "" : "?" + query);
  }
  std::string root(const std::string& name) const {
    return "sslrootcert=" + files->certificate(name).string();
  }
  static bool is_greeting(std::string_view said) {
    return said.find("mysql_native_password") != said.npos ||
           said.find("caching_sha2_password") != said.npos;
  }
  // What hangs until then would hang for ever.
  static constexpr auto kHangs = 40s;
  static std::jthread end_later(servers::Relay& relay) {
    return std::jthread([&relay, end = BootClock::now() + kHangs](const std::stop_token& stop) {
      while (!stop.stop_requested() && BootClock::now() < end) std::this_thread::sleep_for(10ms);
      relay.cut();
    });
  }
  std::string error_with(const std::string& query, const std::string& user = "admin") const {
    return error_of([&] { take(*open_mysql(mysql_options(url(query, user))), "report", "a~1"); });
  }

  std::unique_ptr<servers::Certificates> files;
};

TEST_F(MysqlTlsTest, IsVerifiedInFullUnlessTheUrlSaysOtherwise) {
  start_with("server");
  EXPECT_THAT(error_with(""), AllOf(StartsWith("misconfigured"), HasSubstr("sslrootcert=FILE")));
  EXPECT_THAT(error_with(root("other-ca")), StartsWith("misconfigured"));
  EXPECT_THAT(error_with("sslrootcert=/nonexistent"), StartsWith("misconfigured"));
  EXPECT_EQ(error_with(root("ca")), "none");
  EXPECT_EQ(error_with("sslmode=require"), "none");
  Admin admin(server->url());
  admin("CREATE USER careful REQUIRE X509");
  admin("GRANT ALL ON simba_db.* TO careful");
  EXPECT_THAT(error_with(root("ca"), "careful"), StartsWith("the store denied"));
  EXPECT_THAT(error_with("sslmode=disable", "careful"), StartsWith("the store denied"));
  EXPECT_EQ(error_with(root("ca") + "&sslcert=" + files->certificate("client").string() +
                           "&sslkey=" + files->key("client").string(),
                       "careful"),
            "none");
}

TEST_F(MysqlTlsTest, OfAnotherHostIsRefused) {
  start_with("elsewhere");
  EXPECT_THAT(error_with(root("ca")), StartsWith("misconfigured"));
  EXPECT_EQ(error_with(root("ca") + "&sslmode=require"), "none");
}

TEST_F(MysqlTlsTest, IsNotGivenUpForAServerWithoutIt) {
  is_mysql() ? start({.config = {{"tls-version", ""}}, .environment = {}}) : start();
  EXPECT_THAT(error_with(root("ca")), StartsWith("misconfigured"));
  EXPECT_THAT(error_with("sslmode=require"), StartsWith("misconfigured"));
}

// The relay is an impostor: it asks for a plugin that would hand the password over. Both names have
// the same length.
TEST_F(MysqlTlsTest, APluginThatHandsThePasswordOverNeedsAServerThatIsProven) {
  if (is_mysql()) GTEST_SKIP() << "it asks for such a plugin by itself";
  start_with("server");
  Admin(server->url())("CREATE USER guarded IDENTIFIED BY 'canary'");
  Admin(server->url())("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO guarded");
  servers::Relay relay(server->port());
  const auto error_through = [&](const std::string& query) {
    MysqlOptions there = mysql_options(url(query, "guarded:canary"));
    there.hosts = {{"127.0.0.1", relay.port()}};
    return error_of([&] { take(*open_mysql(there), "report", "a~1"); });
  };
  const std::string native = "mysql_native_password";
  const auto is_refused =
      AllOf(StartsWith("the store denied"), HasSubstr("verify-full"), Not(HasSubstr("canary")));
  for (const std::string plugin : {"caching_sha2_password", "sha256_password"}) {
    SCOPED_TRACE(plugin);
    // In the greeting, which comes before TLS.
    relay.lie([&](std::string_view said) {
      std::string other(said);
      const std::size_t at = other.find(native);
      if (at != other.npos) other.replace(at, native.size(), plugin).resize(said.size());
      return other;
    });
    EXPECT_THAT(error_through("sslmode=require"), is_refused);
    EXPECT_THAT(error_through("sslmode=disable"), is_refused);
    EXPECT_EQ(error_through(root("ca")), "none") << "who is proven may ask for it";
    // After it.
    relay.lie([&](std::string_view said) {
      if (said.find(native) != said.npos) return std::string(said);
      const std::string body = '\xfe' + plugin + '\0' + std::string(20, 's') + '\0';
      return std::string{static_cast<char>(body.size()), 0, 0, 2} + body;
    });
    EXPECT_THAT(error_through("sslmode=disable"), is_refused);
    relay.mend();
  }
}

// Its first log-in gives the password away, later ones do not: so the server is made to forget.
TEST_F(MysqlTlsTest, APasswordOfMysqlsOwnKindNeedsAServerThatIsProvenOrASocket) {
  if (!is_mysql()) GTEST_SKIP() << "MariaDB has no such passwords";
  start_with("server");
  Admin admin(server->url());
  admin("CREATE USER guarded IDENTIFIED BY 'canary'");
  admin("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO guarded");
  const auto error_as = [&](const std::string& user, const MysqlOptions& there) {
    admin("FLUSH PRIVILEGES");
    return error_of([&] { take(*open_mysql(there), "report", user + "~1"); });
  };
  const auto over_tcp = [&](const std::string& query, const std::string& user) {
    return error_as(user.substr(0, user.find(':')), mysql_options(url(query, user)));
  };
  EXPECT_EQ(over_tcp(root("ca"), "guarded:canary"), "none");
  EXPECT_THAT(over_tcp(root("ca"), "guarded:wrong"),
              AllOf(StartsWith("the store denied"), HasSubstr("check the user")));
  MysqlOptions local =
      mysql_options("mysql://guarded:canary@/simba_db?socket=" + server->socket().string());
  EXPECT_EQ(error_as("guarded", local), "none");
  for (const std::string mode : {"sslmode=require", "sslmode=disable"}) {
    EXPECT_THAT(
        over_tcp(mode, "guarded:canary"),
        AllOf(StartsWith("the store denied"), HasSubstr("verify-full"), Not(HasSubstr("canary"))));
    EXPECT_EQ(over_tcp(mode, "admin"), "none") << "who has no password gives none away";
  }
  admin("SET GLOBAL require_secure_transport = ON");
  EXPECT_THAT(over_tcp("sslmode=disable", "admin"),
              AllOf(StartsWith("misconfigured"), HasSubstr("sslmode=verify-full")));
}

// A full server says so at once, before TLS could prove who says it.
TEST_F(MysqlTlsTest, AFullServerIsOutOfReachUntilSomebodyGoesAndItIsSaidWhy) {
  start_with("server", {{"max-connections", "10"}});
  Admin admin(server->url());
  admin("CREATE USER plain");  // for whom no connection is kept back
  admin("GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO plain");
  const Client client(open_mysql(options(url(root("ca"), "plain"))));
  const Contender owner(client, "held", steady_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner() && owner.is_renewed(); }));
  std::vector<std::unique_ptr<Admin>> others;
  const std::string full = [&] {
    try {
      while (others.size() < 10) others.push_back(std::make_unique<Admin>(server->url("plain")));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("there is room");
  }();
  ASSERT_THAT(full, HasSubstr("Too many connections"));
  const auto store = open_mysql(options(url(root("ca") + "&connect_timeout=9", "plain")));
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("max_connections"),
                    HasSubstr("connections=")));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(owner.is_renewed()) << "who is in goes on";
  EXPECT_EQ(owner.released(), 0);
  others.clear();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

// The server stands still, or the network does: no call waits for it, nor does whoever ends.
TEST_F(MysqlTlsTest, ACallEndsAtItsDeadlineWhateverTheServerDoes) {
  start_with("server");
  servers::Relay relay(server->port());
  MysqlOptions through = mysql_options(url(root("ca")));
  through.hosts = {{"127.0.0.1", relay.port()}};
  auto store = open_mysql(through);
  const Token token = take(*store, "report", "a~1").owner.token;
  const auto watch = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  relay.stall();
  const LocalTime began = BootClock::now();
  const auto ends = end_later(relay);
  const Claim renewal{"report", "a~1", token, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&renewal, 1}, BootClock::now() + 300ms);
              }),
              StartsWith("the deadline passed"));
  const std::vector<Claim> batch{{"x", "a~1", 0, 0, 10s, 6s}, {"y", "a~1", 0, 0, 10s, 6s}};
  EXPECT_NE(error_of([&] { store->contend(batch, BootClock::now() + 300ms); }), "none");
  store.reset();
  EXPECT_LT(BootClock::now() - began, kHangs);
}

// As of a server that is being killed.
TEST_F(MysqlTlsTest, AConnectionThatEndsBeforeTheCertificateIsOutOfReachAndNotMisconfigured) {
  start_with("server");
  servers::Relay relay(server->port());
  MysqlOptions through = mysql_options(url(root("ca")));
  through.hosts = {{"127.0.0.1", relay.port()}};
  const auto store = open_mysql(through);
  relay.lie([&](std::string_view said) {
    if (is_greeting(said)) return std::string(said);
    relay.reset();
    return std::string();
  });
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("TLS")));
  relay.mend();
  EXPECT_TRUE(eventually([&] { return can_take(*store); }));
}

// Between its greeting and its certificate.
TEST_F(MysqlTlsTest, AServerThatStandsStillBeforeItsCertificateIsNotWaitedForEither) {
  start_with("server");
  servers::Relay relay(server->port());
  relay.lie([](std::string_view said) { return std::string(is_greeting(said) ? said : ""); });
  MysqlOptions through = mysql_options(url(root("ca") + "&connect_timeout=1"));
  through.hosts = {{"127.0.0.1", relay.port()}};
  const LocalTime began = BootClock::now();
  const auto ends = end_later(relay);
  auto store = open_mysql(through);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              StartsWith("the store cannot be reached"));
  store.reset();
  EXPECT_LT(BootClock::now() - began, kHangs);
}

TEST_F(MysqlTlsTest, AServerThatIsKilledDoesNotKillItsClients) {
  start_with("server");
  const Client client(open_mysql(options(url(root("ca")))));
  const Contender owner(client, "report", short_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  server->kill();  // a write to a closed connection raises SIGPIPE where nobody takes care
  ASSERT_TRUE(eventually([&] { return !owner.is_owner(); }));
  server->start();
  EXPECT_TRUE(eventually([&] { return owner.is_owner(); }));
}

}  // namespace
}  // namespace simba::mysql
