#include "stores/mysql/endpoint.h"
#include "stores/mysql/mysql_fixture.h"

// Fencing tokens near the ends of what numbers can hold.
namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using MysqlTokenTest = MysqlTest;

// Above 2^53 a double cannot tell neighbours apart.
TEST_F(MysqlTokenTest, TokensGrowByOneUpToTheEndOnEachNewConnection) {
  make_table();
  const std::string dialects[] = {"dialect=mariadb", "dialect=mysql"};
  for (const Token last : {Token{1} << 53, (Token{1} << 63) - 1'000}) {
    admin()("REPLACE INTO " + table + " VALUES ('report', 0, 0, 0, '', 1, " + std::to_string(last) +
            ')');
    for (Token more = 1; more <= 4; ++more) {
      const auto store = open({}, dialects[more % 2]);
      EXPECT_EQ(take(*store, "report", "a~" + std::to_string(more)).owner.token, last + more);
      release(*store, "report", "a~" + std::to_string(more));
    }
    const auto store = open();
    EXPECT_EQ(take(*store, "new-" + std::to_string(last), "a~1", last).owner.token, last + 1);
  }
}

TEST_F(MysqlTokenTest, ARowThatHoldsNonsenseIsAnErrorThatNamesTheServer) {
  make_table();
  const std::string beyond = std::to_string(Token{1} << 63);
  admin()("REPLACE INTO " + table + " VALUES ('report', 0, 0, 0, '', 1, " + beyond + ')');
  const auto store = open(), texts = open({}, "dialect=mysql");
  const std::string where = "mysql at " + Endpoint(options()).where() + ": ";
  const auto names_it =
      AllOf(StartsWith("the store's data"), HasSubstr(where + "a row holds"), HasSubstr(beyond));
  EXPECT_THAT(error_of([&] { observe(*store, "report"); }), names_it);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), names_it);
  EXPECT_THAT(error_of([&] { take(*texts, "report", "a~1"); }), names_it);
  EXPECT_THAT(error_of([&] { store->list("", {}, 10, soon()); }), names_it);
  admin()("ALTER TABLE " + table + " MODIFY ttl_at VARCHAR(20)");
  admin()("UPDATE " + table + " SET fencing_token = 1, ttl_at = 'soon'");
  EXPECT_THAT(error_of([&] { store->list("", {}, 10, soon()); }),
              HasSubstr(where + "the server's answer holds no number"));
}

}  // namespace
}  // namespace simba::mysql
