// What people do to the terminal that a long-running command stands in: it is closed, stopped,
// interrupted; for `run`, `lead`, `schedule` and `watch`.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "cli/exit_codes.h"
#include "cli/shell_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TerminalJobsTest : public TerminalTest {
 protected:
  bool is_free(const std::string& mutex) const {
    return simba({"show", mutex}).code == exit_code::kFree;
  }
  bool has_lines(const std::string& name, long count) const {
    return eventually([&] {
      const std::string text = read_file(file(name));
      return std::count(text.begin(), text.end(), '\n') >= count;
    });
  }
  void close_the_terminal_under(const std::string& command, const std::string& program) {
    shell.type(tool() + " " + command + " -- sh -c '" + program + "'\n");
    const pid_t pid = pid_in("pid");
    ASSERT_GT(pid, 0) << shell.recent();
    shell.close_terminal();
    EXPECT_TRUE(eventually([&] { return !is_alive(pid); }));
    EXPECT_TRUE(eventually([&] { return is_free("x"); })) << "released, not left to run out";
  }
};

const std::string kMinutes = " --ttl 60s --transition 60s --kill-after 300ms ";
const std::string kSleeper = "echo $$ > pid; exec sleep 100";
const std::string kDeaf = "trap \"\" TERM HUP INT; echo $$ > pid; while :; do sleep 0.05; done";

TEST_F(TerminalJobsTest, ClosingTheTerminalEndsTheProgramAndReleases) {
  close_the_terminal_under("run" + kMinutes + "x", kSleeper);
}

TEST_F(TerminalJobsTest, ClosingTheTerminalEndsALeader) {
  close_the_terminal_under("lead" + kMinutes + "x", kSleeper);
}

TEST_F(TerminalJobsTest, ClosingTheTerminalEndsALeaderWhoseProgramIsDeaf) {
  close_the_terminal_under("lead" + kMinutes + "x", kDeaf);
}

TEST_F(TerminalJobsTest, ClosingTheTerminalEndsASchedule) {
  close_the_terminal_under("schedule --every 1h" + kMinutes + "x", kSleeper);
}

TEST_F(TerminalJobsTest, ClosingTheTerminalEndsAWatcher) {
  shell.type(tool() + " watch x & echo $! > pid; fg\n");
  const pid_t watcher = pid_in("pid");
  ASSERT_TRUE(shell.shows("x is free")) << shell.recent();
  shell.close_terminal();
  EXPECT_TRUE(eventually([&] { return !is_alive(watcher); }));
}

TEST_F(TerminalJobsTest, ADaemonOfTheProgramEndsWithTheTerminalToo) {
  std::ofstream(file("daemon.sh")) << kSleeper << '\n';
  shell.type(run + kMinutes + "x -- sh -c '(setsid sh -c \"sh daemon.sh &\") & exec sleep 100'\n");
  const pid_t daemon = pid_in("pid");
  ASSERT_GT(daemon, 0) << shell.recent();
  ASSERT_TRUE(is_alive(daemon));
  shell.close_terminal();
  EXPECT_TRUE(eventually([&] { return !is_alive(daemon); }));
  EXPECT_TRUE(eventually([&] { return is_free("x"); }));
}

TEST_F(TerminalJobsTest, ADaemonDoesNotOutliveTheProgramThatMadeIt) {
  shell.type(run + "--kill-after 300ms x -- sh -c 'setsid sh -c \"" +
             "trap : TERM; echo \\$\\$ > pid; while :; do sleep 0.05; done\" & "
             "while [ ! -s pid ]; do sleep 0.01; done'; echo o''ver\n");
  ASSERT_TRUE(shell.shows("over\r")) << shell.recent();
  EXPECT_FALSE(is_alive(pid_in("pid")));
}

TEST_F(TerminalJobsTest, CtrlCEndsALeaderAndItsProgram) {
  shell.type(tool() + " lead" + kMinutes + "x -- sh -c '" + kSleeper + "'\n");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0) << shell.recent();
  shell.type(kCtrlC);
  expect_code("130");
  EXPECT_FALSE(is_alive(program));
  EXPECT_TRUE(is_free("x"));
}

TEST_F(TerminalJobsTest, CtrlZStopsALeaderAndFgContinuesIt) {
  shell.type(tool() + " lead" + kMinutes +
             "x -- sh -c 'echo rea''dy; read line; echo read:$line'\n");
  ASSERT_TRUE(shell.shows("ready\r")) << shell.recent();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  shell.type("fg\n");
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read:hello")) << shell.recent();
  expect_code("0");
}

TEST_F(TerminalJobsTest, CtrlZStopsAScheduleBetweenItsRunsAndFgContinuesIt) {
  shell.type(tool() + " schedule --every 200ms" + kMinutes + "x -- sh -c 'echo r >> runs'\n");
  ASSERT_TRUE(has_lines("runs", 2)) << shell.recent();
  // One that hits a program which is just ending is lost, as in any shell: it is typed again.
  bool stopped = false;
  for (int i = 0; i < 60 && !stopped; ++i) {
    shell.type(kCtrlZ);
    stopped = shell.shows("Stopped", std::chrono::seconds{1});
  }
  ASSERT_TRUE(stopped) << shell.recent();
  const std::string runs = read_file(file("runs"));
  shell.type("fg\n");
  EXPECT_TRUE(eventually([&] { return read_file(file("runs")).size() > runs.size() + 2; }));
  const std::vector<pid_t> jobs = children_of(shell.pid());
  ASSERT_EQ(jobs.size(), 1U);
  // Not once more than needed: after a key at the prompt the status of the job is forgotten.
  bool ended = false;
  for (int i = 0; i < 60 && !ended; ++i) {
    shell.type(kCtrlC);
    ended = eventually([&] { return !is_alive(jobs.front()); }, std::chrono::seconds{1});
  }
  ASSERT_TRUE(ended) << shell.recent();
  expect_code("130");
}

TEST_F(TerminalJobsTest, CtrlZStopsAWatcherAndFgContinuesIt) {
  shell.type(tool() + " watch x\n");
  ASSERT_TRUE(shell.shows("x is free")) << shell.recent();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("Stopped")) << shell.recent();
  const auto holder = start_script({"--id", "holder", "x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  EXPECT_THAT(shell.recent(), Not(HasSubstr("holder")));
  shell.type("fg\n");
  EXPECT_TRUE(shell.shows("x is held by holder")) << shell.recent();
  shell.type(kCtrlC);
  expect_code("130");
}

}  // namespace
}  // namespace simba::cli
