// Two terminals on one mutex: what one holds, the other waits for.
#include <gmock/gmock.h>

#include "cli/exit_codes.h"
#include "cli/shell_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TwoTerminalsTest : public TerminalTest {
 protected:
  // Holds x in the first until a line is typed there; the second waits, and shows for whom.
  void hold_and_wait() {
    shell.type(run + "--id first x -- sh -c 'echo held by tok''en $SIMBA_TOKEN; read line'\n");
    ASSERT_TRUE(shell.shows("held by token ")) << shell.recent();
    second.type(run + "--id second x -- sh -c 'echo en''tered as $SIMBA_OWNER; read line'\n");
    ASSERT_TRUE(second.shows("waiting for x: held by first for ")) << second.recent();
    ASSERT_TRUE(second.shows("lease ends in at most ")) << second.recent();
  }
  std::string shown() const { return simba({"show", "x"}).out; }

  Shell second{file(""), url()};
};

TEST_F(TwoTerminalsTest, TheSecondWaitsAndEntersWhenTheFirstHasEnded) {
  hold_and_wait();
  EXPECT_THAT(second.recent(), Not(HasSubstr("entered")));
  EXPECT_THAT(shown(), HasSubstr("first"));
  shell.type("\n");
  ASSERT_TRUE(second.shows("entered as second")) << second.recent();
  // What it waited for is wiped away before the program writes.
  EXPECT_THAT(second.recent(), HasSubstr("\r\x1b[Kentered as second"));
  expect_code(shell, "0");
  EXPECT_THAT(shown(), HasSubstr("second"));
  second.type("\n");
  expect_code(second, "0");
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(TwoTerminalsTest, CtrlCEndsWhoWaitsAndLeavesNothingBehind) {
  hold_and_wait();
  const std::vector<pid_t> waiting = children_of(second.pid());
  ASSERT_EQ(waiting.size(), 1U);
  second.type(kCtrlC);
  expect_code(second, "130");
  EXPECT_THAT(second.recent(), Not(HasSubstr("entered")));
  EXPECT_FALSE(is_alive(waiting.front()));
  EXPECT_THAT(children_of(second.pid()), IsEmpty());
  // The holder has noticed nothing, and nobody inherits what it holds.
  EXPECT_THAT(shown(), HasSubstr("first"));
  shell.type("\n");
  expect_code(shell, "0");
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
  EXPECT_THAT(second.recent(), Not(HasSubstr("entered")));
}

}  // namespace
}  // namespace simba::cli
