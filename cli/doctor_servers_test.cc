// `simba doctor` on real servers.
#include <gmock/gmock.h>

#include <thread>

#include "cli/exit_codes.h"
#include "cli/tool_servers_fixture.h"

namespace simba::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DoctorServersTest : public ServerToolTest {
 protected:
  void TearDown() override {
    if (has_table_) sql("DROP TABLE IF EXISTS " + place());
    if (!role_.empty()) sql("DROP OWNED BY " + role_ + "; DROP ROLE " + role_);
  }
  bool use_table(const std::string& kind) { return has_table_ = use(kind); }

  void expect_well(const std::string& server) const {
    ASSERT_EQ(ask({"init"}).code, exit_code::kOk);
    const Result result = well();
    EXPECT_EQ(result.code, exit_code::kOk) << result.out << result.err;
    EXPECT_THAT(result.out, ContainsRegex("ok +server +" + server));
    EXPECT_THAT(result.out, ContainsRegex("ok +rights +may contend"));
    EXPECT_THAT(result.out, ContainsRegex("ok +wake-ups "));
    EXPECT_THAT(ask({"ls", "--all", "simba-doctor"}).out, IsEmpty()) << "nothing is left behind";
    const Result measured = ask({"bench", "--ttl", "60s", "--for", "1s"});
    EXPECT_EQ(measured.code, exit_code::kOk) << measured.err;
  }
  Result well() const {
    return in_a_calm_moment([&] { return ask({"doctor", "--ttl", "60s"}); });
  }
  void expect_clock() const {
    EXPECT_THAT(well().out, ContainsRegex("ok +clock +the store's differs from ours by "));
  }
  std::string url_of(const std::string& user) const {
    std::string url = store();
    const std::size_t from = url.find("//") + 2;
    return url.replace(from, url.find('@') - from, user);
  }
  void expect_missing(const std::string& check) const {
    const Result result = ask({"doctor"});
    EXPECT_EQ(result.code, exit_code::kUnfit) << result.out;
    EXPECT_THAT(result.out, ContainsRegex("failed +" + check + " +[^\n]*run simba init"));
    EXPECT_EQ(ask({"doctor"}).code, exit_code::kUnfit) << "it was not made by looking";
  }

  std::string role_;

 private:
  bool has_table_ = false;
};

TEST_F(DoctorServersTest, AServerThatIsNotThereFails) {
  const Result result = simba({"doctor", "--store", "redis://127.0.0.1:1"});
  EXPECT_EQ(result.code, exit_code::kUnfit) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("failed   store      redis"));
  EXPECT_THAT(simba({"doctor", "--store", "postgres://db/app"}).err,
              HasSubstr("no store serves 'postgres:'; did you mean 'postgresql:'?"));
}

TEST_F(DoctorServersTest, MysqlIsWellOnceItHasItsTable) {
  if (!use_table("mariadb")) return;
  expect_missing("table");
  expect_well("(MariaDB 1|MySQL )[0-9.]+");
  expect_clock();
  EXPECT_EQ(sql("SELECT mutex FROM " + place()), "simba-bench\n") << "and nothing of the doctor";
}

TEST_F(DoctorServersTest, PostgresIsWellOnceItHasItsTable) {
  if (!use_table("postgres")) return;
  expect_missing("table");
  expect_well("PostgreSQL 1[0-9.]+");
  expect_clock();
  EXPECT_EQ(sql("SELECT mutex FROM " + place()), "simba-bench\n") << "and nothing of the doctor";
}

TEST_F(DoctorServersTest, BenchTakesASlowStoreForNoBusyMutex) {
  if (!use_table("postgres")) return;
  ASSERT_EQ(ask({"init"}).code, exit_code::kOk);
  const std::jthread locks_it(
      [&] { sql("BEGIN; LOCK TABLE " + place() + "; SELECT pg_sleep(3); COMMIT"); });
  ASSERT_TRUE(eventually([&] {
    return sql("SELECT count(*) FROM pg_locks WHERE relation = '" + place() +
               "'::regclass AND mode = 'AccessExclusiveLock' AND granted") == "1\n";
  }));
  // A call of this lease ends half a second after it began.
  const Result result = ask({"bench", "--ttl", "4s", "--for", "1s"});
  EXPECT_EQ(result.code, exit_code::kOk) << result.err;
}

TEST_F(DoctorServersTest, WhoMayOnlyLookIsToldWhatIsMissing) {
  if (!use_table("postgres")) return;
  ASSERT_EQ(ask({"init"}).code, exit_code::kOk);
  role_ = place() + "_role";
  sql("CREATE ROLE " + role_ + " LOGIN; GRANT SELECT ON " + place() + " TO " + role_);
  const Result result = ask({"doctor", "--store", url_of(role_)});
  EXPECT_EQ(result.code, exit_code::kUnfit);
  EXPECT_THAT(result.out, ContainsRegex("ok +table "));
  EXPECT_THAT(result.out, ContainsRegex("failed +rights +may not contend: "));
}

TEST_F(DoctorServersTest, AMysqlUserWhoMayOnlyLookIsToldWhatIsMissing) {
  if (!use_table("mariadb")) return;
  ASSERT_EQ(ask({"init"}).code, exit_code::kOk);
  const std::string user = "d" + place().substr(place().size() - 8);
  sql("CREATE USER " + user + "; GRANT SELECT ON " + place() + " TO " + user);
  const Result result = ask({"doctor", "--store", url_of(user)});
  sql("DROP USER " + user);
  EXPECT_EQ(result.code, exit_code::kUnfit);
  EXPECT_THAT(result.out, ContainsRegex("failed +rights +may look, but not contend: [^\n]*GRANT "));
}

TEST_F(DoctorServersTest, ATableOfSomebodyElseFails) {
  if (!use_table("mariadb")) return;
  sql("CREATE TABLE " + place() + " (mutex VARCHAR(66) PRIMARY KEY) ENGINE = InnoDB");
  const Result result = ask({"doctor"});
  EXPECT_EQ(result.code, exit_code::kUnfit);
  EXPECT_THAT(result.out, ContainsRegex("failed +table +[^\n]*has no column acquired_at"));
}

TEST_F(DoctorServersTest, AnotherClockIsSaidAndHarmless) {
  if (!use_table("postgres")) return;
  ASSERT_EQ(ask({"init"}).code, exit_code::kOk);
  Process::Setting setting;
  setting.environment = {"SIMBA_STORE=" + store(), "LD_PRELOAD=" SIMBA_SHIFT_CLOCK,
                         "SIMBA_TEST_CLOCK_SHIFT=-3600"};
  const auto doctor = start({"doctor"}, setting);
  EXPECT_EQ(doctor->wait(), exit_code::kOk) << doctor->out() << doctor->err();
  EXPECT_THAT(doctor->out(), ContainsRegex("warning +clock +the store's is [^\n]* ahead of ours"));
}

TEST_F(DoctorServersTest, RedisIsWellAndForgetsTheVisit) {
  if (!use("redis")) return;
  expect_well("Redis [0-9.]+");
  expect_clock();
  // The server is shared: what another test's doctor is about to forget may be seen.
  const auto scan = [&] {
    Process::Setting setting;
    setting.directory = file(".");
    Process scanning({"/usr/bin/env", "redis-cli", "-u", server(), "--scan", "--pattern",
                      "simba:{simba-doctor*"},
                     setting);
    EXPECT_EQ(scanning.wait(), 0);
    return scanning.out();
  };
  EXPECT_TRUE(eventually([&] { return scan().empty(); })) << scan();
}

TEST_F(DoctorServersTest, MongodbIsWellOnceItHasItsCollection) {
  if (!use("mongodb")) return;
  expect_missing("collection");
  expect_well("MongoDB [0-9.]+");
  expect_clock();
}

TEST_F(DoctorServersTest, ZookeeperIsWell) {
  if (!use("zookeeper")) return;
  EXPECT_THAT(ask({"doctor"}).out, ContainsRegex("warning +node +/" + place() + " is not there"));
  expect_well("ZooKeeper at ");
}

}  // namespace
}  // namespace simba::cli
