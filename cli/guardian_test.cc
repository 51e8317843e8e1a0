// What ends the program in time: the guardian, and `simba` should the guardian fail.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Writes its number and will not end by itself; `deaf`: nor when it is asked to.
const std::string kStubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
const std::string kWilling = "echo $$ > pid; exec sleep 100";
const Words kShortLease{"--ttl", "1s", "--transition", "500ms", "x"};

class GuardianTest : public ToolTest {
 protected:
  // Another owner gets in, and the program of the first was gone by then.
  void expect_no_overlap() {
    const auto successor = start_successor("pid");
    EXPECT_EQ(successor->wait(), 0);
    EXPECT_EQ(successor->out(), "alone\n");
  }
};

TEST_F(GuardianTest, EndsTheProgramWhenOwnershipIsLost) {
  const auto process = start_script(kShortLease, kWilling);
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  expect_no_overlap();
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_THAT(process->err(), HasSubstr("simba: lost 'x' while the program ran"));
}

TEST_F(GuardianTest, LostIsLostAlsoWhenTheProgramEndsWell) {
  const auto process = start_script(
      kShortLease, "trap 'echo bye; exit 0' TERM; echo $$ > pid; while :; do sleep 0.01; done");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_EQ(process->out(), "bye\n");
}

TEST_F(GuardianTest, KillsAProgramThatIgnoresTheRequest) {
  const auto process = start_script(kShortLease, kStubborn);
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  expect_no_overlap();
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheProgramWhenTheStoreIsGone) {
  const auto process = start_script(kShortLease, kWilling);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  for (const char* name : {"locks.db", "locks.db-wal", "locks.db-shm"})
    std::filesystem::remove(file(name));
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(program));
}

TEST_F(GuardianTest, EndsTheProgramInTimeWhenSimbaIsStopped) {
  const auto process = start_script(kShortLease, kStubborn);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  process->signal(SIGSTOP);
  expect_no_overlap();
  EXPECT_FALSE(is_alive(program));
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheProgramAtOnceWhenSimbaIsKilled) {
  const auto process = start_script({"x"}, kWilling);  // a lease of 16 s
  const pid_t program = pid_in("pid");
  const pid_t guardian = guardian_of(*process);
  ASSERT_GT(guardian, 0);
  const auto killed_at = std::chrono::steady_clock::now();
  process->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_alive(program) && !is_alive(guardian); }));
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, 5s);
}

TEST_F(GuardianTest, KillsAStubbornProgramWhenSimbaIsKilled) {
  const auto process = start_script(kShortLease, kStubborn);
  ASSERT_GT(pid_in("pid"), 0);
  process->signal(SIGKILL);
  expect_no_overlap();
}

// A supervisor that kills the group of simba does not reach the guardian.
TEST_F(GuardianTest, EndsTheProgramWhenTheGroupOfSimbaIsKilled) {
  const auto process = start_script(kShortLease, kStubborn + " & wait", {.own_session = true});
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  kill(-process->pid(), SIGKILL);
  expect_no_overlap();
  EXPECT_FALSE(is_alive(program));
}

TEST_F(GuardianTest, SimbaEndsTheProgramWhenTheGuardianIsKilled) {
  const auto process =
      start_script({"x"}, "setsid sh -c 'echo $$ > daemon; exec sleep 100' & " + kStubborn);
  const pid_t program = pid_in("pid");
  const pid_t daemon = pid_in("daemon");
  ASSERT_GT(daemon, 0);
  kill(guardian_of(*process), SIGKILL);
  EXPECT_EQ(process->wait(), exit_code::kUnguarded);
  EXPECT_FALSE(is_alive(program));
  EXPECT_FALSE(is_alive(daemon));
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(GuardianTest, SimbaWakesAGuardianThatWasStopped) {
  const auto process = start_script({"x"}, kWilling);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  kill(guardian_of(*process), SIGSTOP);
  kill(program, SIGTERM);
  EXPECT_EQ(process->wait(), 128 + SIGTERM);  // reported by the guardian
}

TEST_F(GuardianTest, SimbaEndsTheProgramWhenTheGuardianIsStoppedAgainAndAgain) {
  const auto process = start_script({"x"}, kStubborn);
  const pid_t program = pid_in("pid");
  const pid_t guardian = guardian_of(*process);
  ASSERT_GT(guardian, 0);
  EXPECT_TRUE(eventually([&] {
    kill(guardian, SIGSTOP);
    return process->has_ended();
  }));
  EXPECT_EQ(process->wait(), exit_code::kUnguarded);
  EXPECT_FALSE(is_alive(program));
}

TEST_F(GuardianTest, NobodyOverlapsWhenSimbaAndGuardianAreStopped) {
  const auto process = start_script({"--ttl", "1s", "--transition", "2s", "x"}, kWilling);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  const pid_t guardian = guardian_of(*process);
  process->signal(SIGSTOP);
  kill(guardian, SIGSTOP);
  std::this_thread::sleep_for(200ms);  // less than the time that is left
  kill(guardian, SIGCONT);
  expect_no_overlap();
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheWholeGroup) {
  const auto process = start_script(
      kShortLease,
      "sh -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 0.05; done' & " + kWilling);
  const pid_t grandchild = pid_in("grandchild");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(grandchild));
}

TEST_F(GuardianTest, EndsWhatLeftTheGroup) {
  const auto process = start_script(
      kShortLease,
      "(setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 0.05; done' &) ; " +
          kWilling);
  const pid_t daemon = pid_in("daemon");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(daemon));
}

TEST_F(GuardianTest, EndsWhatTheProgramLeavesBehindBeforeItReleases) {
  const auto process =
      start_script({"--kill-after", "300ms", "x"},
                   "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.05; done' & "
                   "while [ ! -s pid ]; do sleep 0.01; done; exit 4");
  expect_no_overlap();
  EXPECT_EQ(process->wait(), 4);
  EXPECT_THAT(process->err(), HasSubstr("left others running"));
}

TEST_F(GuardianTest, WaitsQuietlyForWhatIsAboutToEnd) {
  const auto process = start_script({"x"}, "(sleep 0.02; echo late) & exit 0");
  EXPECT_EQ(process->wait(), 0);
  EXPECT_EQ(process->out(), "late\n");
  EXPECT_EQ(process->err(), "");
}

TEST_F(GuardianTest, KillsWhatForksWithoutEnd) {
  const auto process = start_script(kShortLease,
                                    "echo $$ > pid; trap '' TERM; f() { echo x >> forks; [ $(wc -l "
                                    "< forks) -gt 400 ] || { f & } ; sleep 0.002; }; "
                                    "while :; do f; done");
  ASSERT_GT(pid_in("pid"), 0);
  ASSERT_TRUE(eventually([&] { return read_file(file("forks")).size() > 40; }));
  process->signal(SIGKILL);
  expect_no_overlap();
}

TEST_F(GuardianTest, AStoppedProgramEndsToo) {
  const auto process = start_script(kShortLease, kStubborn);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  kill(program, SIGSTOP);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(program));
}

}  // namespace
}  // namespace simba::cli
