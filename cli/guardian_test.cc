// What ends the program in time: the guardian, and `simba` should the guardian fail.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>
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

Words with(Words lease) {
  lease.emplace_back("x");
  return lease;
}

class GuardianTest : public ToolTest {
 protected:
  using Strike = std::function<void(Process&)>;

  // Whatever strikes the first owner, which is returned, its program is gone when another gets in.
  std::unique_ptr<Process> expect_no_overlap(const std::string& script, const Strike& strike,
                                             const Process::Setting& setting = {}) {
    auto first = start_script(with(kLongLease), script, setting);
    EXPECT_GT(pid_in("pid"), 0);
    strike(*first);
    EXPECT_TRUE(finds_nobody(*start_successor("pid")))
        << "the program was there when another had the mutex";
    return first;
  }
  Strike evict_it() {
    return [this](Process&) { evict("x"); };
  }
  static Strike send(int number) {
    return [number](Process& simba) { simba.signal(number); };
  }
  static bool finds_nobody(Process& successor) {
    EXPECT_EQ(successor.wait(), 0);
    return successor.out() == "alone\n";
  }
};

TEST_F(GuardianTest, EndsTheProgramWhenOwnershipIsLost) {
  const auto process = expect_no_overlap(kWilling, evict_it());
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_THAT(process->err(), HasSubstr("simba: lost 'x' while the program ran"));
}

TEST_F(GuardianTest, LostIsLostAlsoWhenTheProgramEndsWell) {
  const auto process =
      start_script({"--ttl", "2s", "--transition", "10s", "--kill-after", "5s", "x"},
                   "trap 'echo bye; exit 0' TERM; echo $$ > pid; while :; do sleep 0.01; done");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_EQ(process->out(), "bye\n");
}

TEST_F(GuardianTest, KillsAProgramThatIgnoresTheRequest) {
  const auto process = expect_no_overlap(kStubborn, evict_it());
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheProgramWhenTheStoreIsGone) {
  const auto process = start_script({"--ttl", "2s", "--transition", "2s", "x"}, kWilling);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  for (const char* name : {"locks.db", "locks.db-wal", "locks.db-shm"})
    std::filesystem::remove(file(name));
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(program));
}

TEST_F(GuardianTest, EndsTheProgramInTimeWhenSimbaIsStopped) {
  const auto process = expect_no_overlap(kStubborn, send(SIGSTOP));
  EXPECT_FALSE(is_alive(pid_in("pid")));
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

// By its own timer, and in time for the program to tidy up.
TEST_F(GuardianTest, AsksTheProgramToEndBeforeItKillsWhenSimbaIsStopped) {
  const auto process =
      start_script({"--ttl", "2s", "--transition", "8s", "--kill-after", "5s", "x"},
                   "trap 'echo asked > tidied; exit 0' TERM; echo $$ > pid; "
                   "while :; do sleep 0.01; done");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  process->signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return !is_alive(program); }));
  EXPECT_EQ(read_file(file("tidied")), "asked\n") << "it was killed without a word";
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheProgramAtOnceWhenSimbaIsKilled) {
  // The end of the lease is longer away than the patience below.
  const auto process = start_script({"--ttl", "60s", "--transition", "60s", "x"}, kWilling);
  const pid_t program = pid_in("pid");
  const pid_t guardian = guardian_of(*process);
  ASSERT_GT(guardian, 0);
  process->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_alive(program) && !is_alive(guardian); }));
}

TEST_F(GuardianTest, KillsAStubbornProgramWhenSimbaIsKilled) {
  expect_no_overlap(kStubborn, send(SIGKILL));
}

// A supervisor that kills the group of simba does not reach the guardian.
TEST_F(GuardianTest, EndsTheProgramWhenTheGroupOfSimbaIsKilled) {
  expect_no_overlap(kStubborn + " & wait",
                    [](Process& simba) { EXPECT_EQ(kill(-simba.pid(), SIGKILL), 0); },
                    {.own_session = true});
  EXPECT_FALSE(is_alive(pid_in("pid")));
}

TEST_F(GuardianTest, SimbaEndsTheProgramWhenTheGuardianIsKilled) {
  const auto process =
      start_script({"x"}, "setsid sh -c 'echo $$ > daemon; exec sleep 100' & " + kStubborn);
  const pid_t program = pid_in("pid");
  const pid_t daemon = pid_in("daemon");
  ASSERT_GT(daemon, 0);
  const pid_t guardian = guardian_of(*process);
  ASSERT_GT(guardian, 0);
  kill(guardian, SIGKILL);
  EXPECT_EQ(process->wait(), exit_code::kUnguarded);
  EXPECT_FALSE(is_alive(program));
  EXPECT_FALSE(is_alive(daemon));
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(GuardianTest, SimbaWakesAGuardianThatWasStopped) {
  const auto process = start_script({"x"}, kWilling);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  const pid_t guardian = guardian_of(*process);
  ASSERT_GT(guardian, 0);
  kill(guardian, SIGSTOP);
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
  const auto process = expect_no_overlap(kWilling, [&](Process& simba) {
    const pid_t guardian = guardian_of(simba);
    ASSERT_GT(guardian, 0);
    simba.signal(SIGSTOP);
    kill(guardian, SIGSTOP);
    std::this_thread::sleep_for(200ms);  // less than the time that is left
    kill(guardian, SIGCONT);
  });
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), exit_code::kLost);
}

TEST_F(GuardianTest, EndsTheWholeGroup) {
  const auto process = start_script(
      with(kLongLease),
      "sh -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 0.05; done' & " + kWilling);
  const pid_t grandchild = pid_in("grandchild");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(grandchild));
}

TEST_F(GuardianTest, EndsWhatLeftTheGroup) {
  const auto process = start_script(
      with(kLongLease),
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
  ASSERT_GT(pid_in("pid"), 0);
  EXPECT_TRUE(finds_nobody(*start_successor("pid")));
  EXPECT_EQ(process->wait(), 4);
  EXPECT_THAT(process->err(), HasSubstr("left others running"));
}

// What is about to end has 100 ms for it: on a machine that stands still, one of ten has them.
TEST_F(GuardianTest, WaitsQuietlyForWhatIsAboutToEnd) {
  std::string out, err;
  for (int i = 0; i < 10; ++i) {
    const auto process = start_script({"x"}, "(sleep 0.02; echo late) & exit 0");
    ASSERT_EQ(process->wait(), 0);
    out = process->out();
    err = process->err();
    if (out == "late\n" && err.empty()) return;
  }
  FAIL() << out << err;
}

TEST_F(GuardianTest, KillsWhatForksWithoutEnd) {
  expect_no_overlap(
      ": > forks; echo $$ > pid; trap '' TERM; f() { echo x >> forks; [ $(wc -l < forks) -gt 400 ] "
      "|| { f & } ; sleep 0.002; }; while :; do f; done",
      [&](Process& simba) {
        EXPECT_TRUE(eventually([&] { return read_file(file("forks")).size() > 40; }));
        simba.signal(SIGKILL);
      });
}

TEST_F(GuardianTest, AStoppedProgramEndsToo) {
  const auto process = start_script(with(kLongLease), kStubborn);
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  kill(program, SIGSTOP);
  evict("x");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_FALSE(is_alive(program));
}

}  // namespace
}  // namespace simba::cli
