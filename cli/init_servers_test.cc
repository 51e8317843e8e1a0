// `simba init` on real servers: made once, harmless twice, printed for somebody else, refused where
// something else stands in its place.
#include <gmock/gmock.h>

#include "cli/exit_codes.h"
#include "cli/tool_servers_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InitServersTest : public ServerToolTest {
 protected:
  void TearDown() override {
    if (has_table_) sql("DROP TABLE IF EXISTS " + place());
  }
  bool use_table(const std::string& kind) { return has_table_ = use(kind); }

  void expect_made_once() const {
    const Result first = ask({"init"});
    EXPECT_EQ(first.code, exit_code::kOk) << first.err;
    EXPECT_THAT(first.out, HasSubstr(" is made\n"));
    EXPECT_EQ(ask({"run", "x", "--", "true"}).code, exit_code::kOk);
    const Result second = ask({"init"});
    EXPECT_EQ(second.code, exit_code::kOk) << second.err;
    EXPECT_THAT(second.out, HasSubstr(" was there already\n"));
    EXPECT_THAT(ask({"ls", "--all"}).out, HasSubstr("x")) << "nothing was lost";
  }
  void expect_printed_fits() const {
    const Result printed = ask({"init", "--print"});
    EXPECT_EQ(printed.code, exit_code::kOk) << printed.err;
    EXPECT_THAT(printed.out, HasSubstr("-- GRANT SELECT, INSERT, UPDATE ON "));
    sql(printed.out);
    EXPECT_THAT(ask({"init"}).out, HasSubstr(" was there already\n"));
  }
  void expect_refused(const std::string& why) const {
    const Result result = ask({"init"});
    EXPECT_EQ(result.code, exit_code::kUsage) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_THAT(result.out, IsEmpty());
  }

 private:
  bool has_table_ = false;
};

TEST_F(InitServersTest, MysqlHasItsTableMadeOnce) {
  if (use_table("mariadb")) expect_made_once();
}

TEST_F(InitServersTest, WhatIsPrintedForMysqlMakesTheTable) {
  if (use_table("mariadb")) expect_printed_fits();
}

TEST_F(InitServersTest, AMysqlTableOfSomebodyElseIsRefusedAndLeftAsItIs) {
  if (!use_table("mariadb")) return;
  sql("CREATE TABLE " + place() + " (mutex VARCHAR(66) PRIMARY KEY, price INT) ENGINE = InnoDB");
  expect_refused("has no column acquired_at: it is another table");
  EXPECT_EQ(
      sql("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = '" + place() + "'"),
      "2\n");
}

constexpr const char* kOldMysqlColumns =
    " (mutex VARCHAR(66) NOT NULL PRIMARY KEY, acquired_at BIGINT UNSIGNED NOT NULL, ttl_at BIGINT "
    "UNSIGNED NOT NULL, transition_at BIGINT UNSIGNED NOT NULL, owner_id CHAR(32) NOT NULL, "
    "version "
    "INT UNSIGNED NOT NULL) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

TEST_F(InitServersTest, AnOldMysqlTableGetsItsTokensAndKeepsItsRows) {
  if (!use_table("mariadb")) return;
  sql("CREATE TABLE " + place() + kOldMysqlColumns);
  sql("INSERT INTO " + place() + " VALUES ('kept', 0, 0, 0, 'somebody', 7)");
  EXPECT_THAT(ask({"init"}).out, HasSubstr(" is up to date now\nALTER TABLE "));
  EXPECT_EQ(ask({"run", "x", "--", "true"}).code, exit_code::kOk);
  EXPECT_EQ(sql("SELECT owner_id, version FROM " + place() + " WHERE mutex = 'kept'"),
            "somebody\t7\n");
}

TEST_F(InitServersTest, WhatIsPrintedForMysqlBringsAnOldTableUpToDate) {
  if (!use_table("mariadb")) return;
  sql("CREATE TABLE " + place() + kOldMysqlColumns);
  const std::string printed = ask({"init", "--print"}).out;
  const std::size_t from = printed.find("\n-- ALTER TABLE ");
  ASSERT_NE(from, printed.npos) << printed;
  sql(printed.substr(from + 4, printed.find('\n', from + 1) - from - 4));
  EXPECT_THAT(ask({"init"}).out, HasSubstr(" was there already\n"));
}

TEST_F(InitServersTest, PostgresHasItsTableMadeOnce) {
  if (use_table("postgres")) expect_made_once();
}

TEST_F(InitServersTest, WhatIsPrintedForPostgresMakesTheTable) {
  if (use_table("postgres")) expect_printed_fits();
}

TEST_F(InitServersTest, APostgresTableOfSomebodyElseIsRefused) {
  if (!use_table("postgres")) return;
  sql("CREATE TABLE " + place() + " (mutex text PRIMARY KEY, price int)");
  expect_refused("has no column acquired_at: it is another table");
}

TEST_F(InitServersTest, APostgresTableWithAWrongTypeOrWithoutItsKeyIsRefused) {
  if (!use_table("postgres")) return;
  const std::string rest =
      " ttl_at bigint, transition_at bigint, owner_id text, version bigint, fencing_token bigint)";
  sql("CREATE TABLE " + place() + " (mutex text PRIMARY KEY, acquired_at timestamptz," + rest);
  expect_refused("has a column acquired_at of the type timestamp with time zone");
  sql("DROP TABLE " + place());
  sql("CREATE TABLE " + place() + " (mutex text, acquired_at bigint," + rest);
  expect_refused("ADD PRIMARY KEY (mutex)");
}

// Names are compared byte by byte.
TEST_F(InitServersTest, APostgresTableThatTakesOneNameForAnotherIsRefused) {
  if (!use_table("postgres")) return;
  const auto columns = [&](const std::string& mutex, const std::string& owner) {
    return "CREATE TABLE " + place() + " (mutex " + mutex +
           " PRIMARY KEY, acquired_at bigint, ttl_at bigint, transition_at bigint, owner_id " +
           owner + ", version bigint, fencing_token bigint)";
  };
  sql(columns("character(66)", "text"));
  expect_refused("has a column mutex of the type character");
  sql("DROP TABLE " + place());
  const std::string collation = place() + "_ci";
  sql("CREATE COLLATION " + collation +
      " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
  sql(columns("text COLLATE " + collation, "text"));
  expect_refused("ALTER COLUMN mutex TYPE varchar(66) COLLATE \"C\"");
  sql("DROP TABLE " + place());
  sql(columns("text", "text COLLATE " + collation));
  expect_refused("ALTER COLUMN owner_id TYPE varchar(128) COLLATE \"C\"");
  sql("ALTER TABLE " + place() + " ALTER COLUMN owner_id TYPE varchar(128) COLLATE \"C\"");
  EXPECT_THAT(ask({"init"}).out, HasSubstr(" was there already\n"));
  sql("DROP COLLATION " + collation);
}

TEST_F(InitServersTest, AnOldPostgresTableGetsItsTokens) {
  if (!use_table("postgres")) return;
  sql("CREATE TABLE " + place() +
      " (mutex text PRIMARY KEY, acquired_at bigint NOT NULL, ttl_at bigint NOT NULL,"
      " transition_at bigint NOT NULL, owner_id text NOT NULL, version bigint NOT NULL)");
  EXPECT_THAT(ask({"init"}).out, HasSubstr(" is up to date now\nALTER TABLE "));
  EXPECT_EQ(ask({"run", "x", "--", "true"}).code, exit_code::kOk);
}

TEST_F(InitServersTest, MongodbHasItsCollectionMadeOnce) {
  if (use("mongodb")) expect_made_once();
}

TEST_F(InitServersTest, ZookeeperHasItsNodeMadeOnceAndItsChrootToo) {
  if (!use("zookeeper")) return;
  expect_made_once();
  const std::string chroot = server() + "/" + place() + "_root?base=/below/" + place();
  EXPECT_THAT(ask({"init", "--store", chroot}).out, HasSubstr("/" + place() + "_root "));
  EXPECT_THAT(ask({"init", "--store", chroot}).out, HasSubstr(" was there already\n"));
}

TEST_F(InitServersTest, RedisNeedsNothing) {
  if (!use("redis")) return;
  EXPECT_THAT(ask({"init"}).out, HasSubstr("needs nothing to be made"));
  EXPECT_THAT(ask({"init", "--print"}).out, HasSubstr("# ACL SETUSER contender"));
}

}  // namespace
}  // namespace simba::cli
