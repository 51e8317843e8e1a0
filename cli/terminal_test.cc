// `simba run` under a shell on a terminal of its own: what keys do.
#include <gmock/gmock.h>

#include "cli/shell_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TerminalTest, TheProgramReadsFromTheTerminal) {
  shell.type(run + "x -- sh -c 'echo rea''dy; read line; echo read:$line'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read:hello")) << shell.recent();
  expect_code("0");
}

TEST_F(TerminalTest, CtrlCReachesTheProgram) {
  shell.type(run +
             "x -- sh -c 'trap \"echo got-''int; exit 9\" INT; echo rea''dy; while :; do sleep "
             "0.05; done'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type(kCtrlC);
  EXPECT_TRUE(shell.shows("got-int")) << shell.recent();
  expect_code("9");
}

TEST_F(TerminalTest, CtrlCEndsTheScriptAroundIt) {
  shell.type("bash -c 'for i in 1 2 3; do " + run +
             "x -- sh -c \"echo rea''dy; exec sleep 100\"; echo af''ter; done'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type(kCtrlC);
  expect_code("130");
  EXPECT_THAT(shell.recent(), Not(HasSubstr("after")));
}

TEST_F(TerminalTest, ShowsWhoItWaitsForAndCtrlCEndsTheWaiting) {
  const auto holder = start_script({"--id", "holder", "x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  shell.type(run + "x -- echo r''an\n");
  ASSERT_TRUE(shell.shows("waiting for x: held by holder for ")) << shell.recent();
  EXPECT_TRUE(shell.shows("lease ends in at most ")) << shell.recent();
  shell.type(kCtrlC);
  expect_code("130");
  EXPECT_THAT(shell.recent(), Not(HasSubstr("ran")));
}

TEST_F(TerminalTest, ShowsWhenItWillAskAndCtrlCEndsTheInitialDelay) {
  shell.type("SIMBA_INITIAL_DELAY=90s " + run + "x -- echo r''an\n");
  ASSERT_TRUE(shell.shows("waiting for x: it is asked for in 1 min ")) << shell.recent();
  shell.look_anew();
  EXPECT_TRUE(shell.shows("it is asked for in ")) << "it is painted once only";
  EXPECT_TRUE(shell.shows(" s (initial-delay)")) << shell.recent();
  shell.type(kCtrlC);
  expect_code("130");
  EXPECT_THAT(shell.recent(), Not(HasSubstr("ran")));
  shell.type("SIMBA_INITIAL_DELAY=300ms " + run + "x -- echo r''an\n");
  ASSERT_TRUE(shell.shows("ran\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), HasSubstr("(initial-delay)\r\x1b[Kran")) << "it is wiped away";
}

TEST_F(TerminalTest, ANewMutexWithANearNameIsSaidToAPersonOnly) {
  ASSERT_EQ(simba({"run", "app/nightly", "--", "true"}).code, 0);
  const std::string hint = "'app/nigthly' is new; did you mean 'app/nightly'?";
  shell.type(run + "app/nigthly -- echo r''an\n");
  EXPECT_TRUE(shell.shows("ran\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), HasSubstr(hint));
  shell.type(run + "app/nigthly -- echo r''an\n");
  ASSERT_TRUE(shell.shows("ran\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), Not(HasSubstr("is new"))) << "it was held once";
  shell.type(run + "-q app/nightyl -- echo r''an\n");
  ASSERT_TRUE(shell.shows("ran\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), Not(HasSubstr("is new")));
  const auto expect_hint = [&](const std::string& command, const std::string& mutex,
                               const std::string& near) {
    ASSERT_EQ(simba({"run", near, "--", "true"}).code, 0);
    shell.type(tool() + ' ' + command + ' ' + mutex + " -- sh -c 'echo r''an; exec sleep 100'\n");
    ASSERT_TRUE(shell.shows("ran\r")) << shell.recent();
    EXPECT_THAT(shell.recent(), HasSubstr("'" + mutex + "' is new; did you mean '" + near + "'?"));
    shell.type(kCtrlC);
    expect_code("130");
  };
  expect_hint("lead", "biling", "billing");
  expect_hint("schedule --every 1h", "odrers", "orders");
  shell.type(tool() + " ls apq/; echo do''ne\n");
  ASSERT_TRUE(shell.shows("done\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), HasSubstr("no mutex is held under 'apq/'; did you mean 'app/'?"));
}

TEST_F(TerminalTest, QuietWaitingShowsNothing) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  shell.type(run + "-q --wait 300ms x -- true; echo do''ne\n");
  ASSERT_TRUE(shell.shows("done\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), Not(HasSubstr("waiting for")));
}

TEST_F(TerminalTest, CtrlZStopsTheJobAndFgContinuesIt) {
  shell.type(run + "x -- sh -c 'echo rea''dy; read line; echo read:$line'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  shell.type("fg\n");
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read:hello")) << shell.recent();
  expect_code("0");
}

TEST_F(TerminalTest, AStoppedJobLosesTheMutexAndEnds) {
  shell.type(run +
             "--ttl 2s --transition 8s --kill-after 500ms x -- sh -c 'echo $$ > pid; echo "
             "rea''dy; exec sleep 100'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  const pid_t program = pid_in("pid");
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  const auto successor = start_successor("pid");
  EXPECT_EQ(successor->wait(), 0);
  EXPECT_EQ(successor->out(), "alone\n");
  EXPECT_FALSE(is_alive(program));
  shell.type("fg\n");
  EXPECT_TRUE(shell.shows("lost 'x'")) << shell.recent();
  expect_code("70");
}

TEST_F(TerminalTest, CtrlZStopsTheWaitingToo) {
  const auto holder = start_script({"x"}, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done");
  ASSERT_GT(pid_in("pid"), 0);
  shell.type(run + "x -- echo r''an\n");
  ASSERT_TRUE(shell.shows("waiting for x")) << shell.recent();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  shell.type("touch go; fg\n");
  EXPECT_TRUE(shell.shows("ran\r")) << shell.recent();
}

TEST_F(TerminalTest, LeavesTheTerminalToTheRestOfAPipeline) {
  shell.type(run + "x -- echo th''rough | (cat; read line < /dev/tty; echo tty:$line)\n");
  ASSERT_TRUE(shell.shows("through")) << shell.recent();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("tty:hello")) << shell.recent();
}

TEST_F(TerminalTest, GivesTheTerminalToAProgramInAPipelineThatAsksForIt) {
  shell.type(run + "x -- sh -c 'echo rea''dy; read line; echo read:$line' | cat\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read:hello")) << shell.recent();
}

TEST_F(TerminalTest, AnInteractiveShellFeelsAtHome) {
  shell.type(run + "x -- bash --norc --noprofile --noediting -i\n");
  ASSERT_TRUE(shell.shows("\n> ")) << shell.recent();
  shell.type("sh -c 'echo o''ne; exec sleep 100'\n");
  ASSERT_TRUE(shell.shows("one\r")) << shell.recent();
  shell.type(kCtrlC);
  ASSERT_TRUE(shell.shows("> ")) << shell.recent();
  shell.type("sh -c 'echo tw''o; exec sleep 100'\n");
  ASSERT_TRUE(shell.shows("two\r")) << shell.recent();
  shell.type(kCtrlZ);
  EXPECT_TRUE(shell.shows("Stopped")) << shell.recent();
  shell.type("kill -KILL $$\n");  // and what it leaves behind
  expect_code("137");
}

TEST_F(TerminalTest, RunsInTheBackground) {
  shell.type(run + "x -- sh -c 'sleep 0.1; echo backg''round' &\n");
  EXPECT_TRUE(shell.shows("background")) << shell.recent();
  shell.type("wait; echo sti''ll\n");
  EXPECT_TRUE(shell.shows("still")) << shell.recent();
}

TEST_F(TerminalTest, ColoursOnlyATerminal) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  shell.type(tool() + " ls; echo do''ne\n");
  ASSERT_TRUE(shell.shows("done\r"));
  EXPECT_THAT(shell.recent(), HasSubstr("\x1b[1mMUTEX"));
  shell.type("NO_COLOR=1 " + tool() + " ls; echo do''ne\n");
  ASSERT_TRUE(shell.shows("done\r"));
  EXPECT_THAT(shell.recent(), Not(HasSubstr("\x1b[1m")));
}

}  // namespace
}  // namespace simba::cli
