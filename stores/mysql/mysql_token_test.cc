#include "stores/mysql/mysql_fixture.h"

// Fencing tokens near the ends of what numbers can hold.
namespace simba::mysql {
namespace {

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

}  // namespace
}  // namespace simba::mysql
