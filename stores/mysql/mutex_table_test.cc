#include "stores/mysql/mutex_table.h"

#include <algorithm>

#include "stores/mysql/mysql_fixture.h"
#include "stores/mysql/schema.h"

namespace simba::mysql {
namespace {

using MysqlTableTest = MysqlTest;

TEST_F(MysqlTableTest, AReleaseOfWhichTheAnswerSaysNothingIsNotTakenForDone) {
  const auto store = open();
  std::vector<Claim> terms;
  for (const char* mutex : {"x", "y"}) {
    terms.push_back({mutex, "a~1", take(*store, mutex, "a~1").owner.token, 0, {}, {}});
  }
  Endpoint endpoint(options());
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  prepare_connection(connection, soon());
  connection.query("SET SESSION sql_select_limit = 1", soon());
  std::vector<Freed> freed;
  const Answers answers = mysql::release(connection, terms, soon(), freed);
  EXPECT_EQ(freed.size(), 1U);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(),
                          [](const Answer& each) { return std::holds_alternative<Blocked>(each); }),
            1);
}

}  // namespace
}  // namespace simba::mysql
