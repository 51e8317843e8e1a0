#include <limits>

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

TEST_F(MysqlTokenTest, ARowAtTheEndOfTheTokensIsCorruptForThatClaimAlone) {
  const auto store = open();
  take(*store, "b", "x~0");
  admin()("UPDATE " + table + " SET fencing_token = 9223372036854775807, transition_at = 0");
  const std::vector<Claim> claims{
      {"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~2", 0, 0, 10s, 6s}, {"c", "x~3", 0, 0, 10s, 6s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
  EXPECT_EQ(std::get<Error>(answers[1]).errc(), Errc::kCorrupt);
  EXPECT_EQ(observed(answers[2]).owner.id, "x~3");
  EXPECT_EQ(std::get<Error>(contend(*store, claims[1])).errc(), Errc::kCorrupt);
  constexpr Token kHuge = std::numeric_limits<Token>::max();
  EXPECT_EQ(std::get<Error>(contend(*store, {"d", "x~1", 0, kHuge, 10s, 6s})).errc(),
            Errc::kMisconfigured);
}

}  // namespace
}  // namespace simba::mysql
