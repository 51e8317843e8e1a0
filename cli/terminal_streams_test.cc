// `simba run` on a terminal whose standard streams are something else: its keys work all the same.
#include <gmock/gmock.h>

#include <csignal>

#include "cli/exit_codes.h"
#include "cli/shell_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// "T": stopped.
std::string state_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat.substr(std::min(stat.rfind(')') + 2, stat.size()), 1);
}

TEST_F(TerminalTest, CtrlZStopsAJobThatReadsNothingAndFgContinuesIt) {
  shell.type(run + "x -- sh -c 'echo $$ > pid; exec sleep 100' < /dev/null\n");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0) << shell.recent();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  EXPECT_EQ(state_of(program), "T");
  shell.type("fg\n");
  EXPECT_TRUE(eventually([&] { return state_of(program) == "S"; })) << "it was left stopped";
  shell.type(kCtrlC);
  expect_code("130");
  EXPECT_FALSE(is_alive(program));
}

TEST_F(TerminalTest, AProgramThatIsFedByAPipeMayAskForTheTerminal) {
  shell.type("echo da''ta | " + run +
             "x -- sh -c 'cat; echo rea''dy; read line < /dev/tty; echo tty:$line'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), HasSubstr("data\r"));
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("tty:hello")) << shell.recent();
  expect_code("0");
}

TEST_F(TerminalTest, CtrlCEndsTheScriptAroundItAlsoWhenItReadsOrWritesAFile) {
  for (const char* redirection : {"< /dev/null", "> /dev/null"}) {
    shell.type("bash -c 'for i in 1 2 3; do " + run +
               "x -- sh -c \"echo rea''dy >&2; exec sleep 100\" " + redirection +
               "; echo af''ter; done'\n");
    ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
    shell.type(kCtrlC);
    expect_code("130");
    EXPECT_THAT(shell.recent(), Not(HasSubstr("after"))) << redirection;
  }
}

TEST_F(TerminalTest, WhoStopsAProgramThatReadsNothingDoesNotStopTheJob) {
  shell.type(run + "x -- sh -c 'echo $$ > pid; kill -STOP $$; echo e''nd' < /dev/null\n");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0) << shell.recent();
  ASSERT_TRUE(eventually([&] { return state_of(program) == "T"; }));
  EXPECT_EQ(kill(program, SIGCONT), 0);
  EXPECT_TRUE(shell.shows("end\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), Not(HasSubstr("Stopped")));
}

TEST_F(TerminalTest, ADumbTerminalGetsNoEscapes) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  shell.type("export TERM=dumb; " + tool() + " ls; " + run +
             "--wait 300ms x -- true; echo do''ne\n");
  ASSERT_TRUE(shell.shows("done\r")) << shell.recent();
  EXPECT_THAT(shell.recent(), HasSubstr("MUTEX"));
  EXPECT_THAT(shell.recent(), HasSubstr("was not acquired"));
  EXPECT_THAT(shell.recent(), Not(HasSubstr("\x1b[")));
}

// Without any terminal: what a supervisor does.
TEST_F(TerminalTest, WhoeverStopsAndContinuesItStopsAndContinuesTheProgram) {
  const auto process = start_script({"x"}, "echo $$ > pid; exec sleep 100", {.own_session = true});
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  process->signal(SIGTSTP);
  ASSERT_TRUE(eventually([&] { return state_of(program) == "T"; }));
  process->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return state_of(program) != "T"; })) << "it was left stopped";
  process->signal(SIGTERM);
  EXPECT_EQ(process->wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace simba::cli
