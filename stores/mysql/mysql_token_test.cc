#include <mysql.h>

#include "stores/mysql/endpoint.h"
#include "stores/mysql/mysql_fixture.h"
#include "testing/servers/relay.h"

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
  const std::string dialects[] = {"dialect=detect", "dialect=mysql"};
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
  admin()("UPDATE " + table + " SET fencing_token = 1, transition_at = " + beyond);
  EXPECT_THAT(error_of([&] { observe(*store, "report"); }), names_it) << "it looked free";
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), names_it);
  admin()("ALTER TABLE " + table + " MODIFY ttl_at VARCHAR(20)");
  admin()("UPDATE " + table + " SET fencing_token = 1, ttl_at = 'soon'");
  EXPECT_THAT(error_of([&] { store->list("", {}, 10, soon()); }),
              HasSubstr(where + "the server's answer holds no number"));
}

// An OK packet: a row was changed, and the number that LAST_INSERT_ID(x) was given, of eight bytes.
TEST_F(MysqlTokenTest, ANumberThatCannotBeIsRefusedAlsoWhereNoRowIsSent) {
  servers::Relay relay(options().hosts.at(0).second);
  MysqlOptions through = options();
  through.hosts = {{"127.0.0.1", relay.port()}};
  through.tls = MysqlOptions::Tls::kDisable;
  if (!is_mariadb() && !through.password.empty()) GTEST_SKIP() << "MySQL wants TLS for a password";
  const auto store = open_mysql(through);
  const auto number_is = [&](std::uint64_t number) {
    relay.lie([number](std::string_view said) {
      std::string other(said);
      const std::size_t at = other.find(std::string("\0\1\xfe", 3), 4);
      if (at != 4) return other;
      for (unsigned i = 0; i < 8; ++i) other[at + 3 + i] = static_cast<char>(number >> (8 * i));
      return other;
    });
  };
  const auto is_refused =
      AllOf(StartsWith("the store's data"), HasSubstr("127.0.0.1:"), HasSubstr("which cannot be"));
  const Token last = take(*store, "report", "a~1").owner.token;
  Token token = last;
  const auto release_all = [&] {
    relay.mend();
    ASSERT_TRUE(eventually([&] { return error_of([&] { observe(*store, "report"); }) == "none"; }));
    for (const char* each : {"a~1", "b~1"}) release(*store, "report", each);
  };
  for (const std::uint64_t wrong :
       {std::uint64_t{0}, std::uint64_t{1'000}, Token{1} << 63, ~std::uint64_t{0}}) {
    SCOPED_TRACE(wrong);
    release_all();
    number_is(wrong);
    EXPECT_THAT(error_of([&] { take(*store, "report", "b~1", last); }), is_refused);
    release_all();
    token = take(*store, "report", "a~1").owner.token;
    if (wrong == 1'000) continue;
    number_is(wrong);
    EXPECT_THAT(error_of([&] { renew(*store, "report", "a~1", token); }), is_refused);
  }
}

TEST_F(MysqlTokenTest, ATextThatIsTooLongIsRefusedAlsoWhereTheConnectionDoesNotTell) {
  make_table();
  admin()("ALTER TABLE " + table + " MODIFY owner_id VARBINARY(3000) NOT NULL");
  admin()("REPLACE INTO " + table + " VALUES ('report', 0, 0, 0, REPEAT('x', 2000), 1, 1)");
  const MysqlOptions there = options();
  MysqlOptions given = there;
  given.connector = [there] {
    const my_bool reports = 0;
    MYSQL* connection = mysql_init(nullptr);
    mysql_optionsv(connection, MYSQL_OPT_NONBLOCK, nullptr);
    mysql_optionsv(connection, MYSQL_REPORT_DATA_TRUNCATION, &reports);
    mysql_real_connect(connection, "127.0.0.1", there.user.c_str(), there.password.c_str(),
                       there.database.c_str(), there.hosts.at(0).second, nullptr,
                       CLIENT_MULTI_STATEMENTS);
    return connection;
  };
  EXPECT_THAT(error_of([&] { observe(*open_mysql(given), "report"); }),
              AllOf(StartsWith("the store's data"), HasSubstr("too long")));
}

}  // namespace
}  // namespace simba::mysql
