// `simba run` as a person uses it: exit status, waiting, signals, what the program finds.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class RunTest : public ToolTest {};

TEST_F(RunTest, PassesTheExitStatusThrough) {
  EXPECT_EQ(simba({"run", "x", "--", "true"}).code, 0);
  EXPECT_EQ(simba({"run", "x", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_EQ(simba({"run", "x", "--", "sh", "-c", "exit 255"}).code, 255);
}

TEST_F(RunTest, SaysNothingWhenAllIsWell) {
  const Result result = simba({"run", "x", "--", "echo", "hello"});
  EXPECT_EQ(result.out, "hello\n");
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(RunTest, TellsOfASignalAsShellsDo) {
  EXPECT_EQ(simba({"run", "x", "--", "sh", "-c", "kill -TERM $$"}).code, 143);
  EXPECT_EQ(simba({"run", "x", "--", "sh", "-c", "kill -KILL $$"}).code, 137);
}

TEST_F(RunTest, TellsOfAProgramThatCannotBeRun) {
  Result result = simba({"run", "x", "--", "no-such-program"});
  EXPECT_EQ(result.code, exit_code::kNotFound);
  EXPECT_EQ(result.err, "simba: cannot run 'no-such-program': no such command in PATH\n");
  EXPECT_EQ(simba({"run", "x", "--", "echo hello"}).err,
            "simba: cannot run 'echo hello': no such command in PATH; leave the quotes out, or "
            "write sh -c before it\n");
  std::ofstream(file("plain")) << "not executable";
  result = simba({"run", "x", "--", file("plain")});
  EXPECT_EQ(result.code, exit_code::kCannotStart);
  EXPECT_THAT(result.err, HasSubstr("Permission denied"));
  EXPECT_EQ(simba({"run", "x", "--", "./nowhere/program"}).code, exit_code::kNotFound);
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(RunTest, EverythingAfterTheDashesBelongsToTheProgram) {
  EXPECT_EQ(simba({"run", "x", "--", "echo", "--wait", "--", "-q", "--help"}).out,
            "--wait -- -q --help\n");
}

TEST_F(RunTest, TellsTheProgramWhatItOwns) {
  const Result result = simba({"run", "--id", "me", "x/y", "--", "sh", "-c",
                               "env | grep ^SIMBA_ | grep -v ^SIMBA_STORE= | sort"},
                              {.environment = {"SIMBA_TOKEN=old", "SIMBA_TEST_OTHER=kept"}});
  EXPECT_THAT(result.out, ::testing::MatchesRegex("SIMBA_MUTEX=x/y\nSIMBA_OWNER=me~[0-9a-v]+\n"
                                                  "SIMBA_TEST_OTHER=kept\nSIMBA_TOKEN=[0-9]+\n"));
}

TEST_F(RunTest, ASimbaWithinTheProgramMeansTheSameStore) {
  const std::string other = "sqlite:" + file("other.db").string();
  const Words inner{"--", tool(), "show", "x"};
  const auto nested = [&](Words outer, const Process::Setting& setting = {}) {
    outer.insert(outer.end(), inner.begin(), inner.end());
    return simba(outer, setting);
  };
  EXPECT_THAT(nested({"run", "x"}).out, HasSubstr("x is held"));
  EXPECT_THAT(nested({"run", "--store", other, "x"}).out, HasSubstr("x is held"));
  EXPECT_THAT(nested({"lead", "--restart", "never", "--store", other, "x"}).out,
              HasSubstr("x is held"));
  std::ofstream(file("url")) << url() << '\n';
  EXPECT_THAT(nested({"run", "--store", other, "x"},
                     {.environment = {"SIMBA_STORE=", "SIMBA_STORE_FILE=" + file("url").string()}})
                  .out,
              HasSubstr("x is held"));
}

TEST_F(RunTest, ASimbaWithinTheProgramMeansTheSameStoreInAnotherDirectory) {
  std::filesystem::create_directories(file("a b?%/inner"));
  std::ofstream(file("prod.yaml")) << "simba: {store: '" + url() + "'}\n";
  const auto nested = [&](const std::string& outer, const Words& environment) {
    const std::string script = "cd 'a b?%' && exec " + tool() + " run " + outer +
                               " x -- sh -c 'cd inner && exec " + tool() + " show x'";
    Process process({"/bin/sh", "-c", script}, {.directory = file(""), .environment = environment});
    EXPECT_EQ(process.wait(), 0) << process.err();
    return process.out();
  };
  EXPECT_THAT(nested("--config ../prod.yaml", {}), HasSubstr("x is held"));
  EXPECT_THAT(nested("", {"SIMBA_CONFIG=../prod.yaml"}), HasSubstr("x is held"));
  EXPECT_THAT(nested("--store sqlite:./a.db?synchronous=full", {}), HasSubstr("x is held"));
  EXPECT_THAT(nested("", {"SIMBA_STORE=sqlite:a.db"}), HasSubstr("x is held"));
}

TEST_F(RunTest, GivesTheProgramOnlyTheStandardDescriptors) {
  Process process(
      {"/bin/sh", "-c",
       "exec 7< /dev/null; exec " + tool() + " run --store " + url() +
           " x -- sh -c 'for n in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$n ] || echo $n; done'"},
      {.directory = file("")});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.out(), "");
}

TEST_F(RunTest, GivesTheProgramAnEmptySignalMask) {
  EXPECT_THAT(simba({"run", "x", "--", "grep", "SigBlk", "/proc/self/status"}).out,
              HasSubstr("0000000000000000"));
}

TEST_F(RunTest, PassesInputAndOutputThrough) {
  EXPECT_EQ(simba({"run", "x", "--", "cat"}, {.input = "line\n"}).out, "line\n");
  EXPECT_EQ(simba({"run", "x", "--", "sh", "-c", "echo trouble >&2"}).err, "trouble\n");
}

// What reads the program's output sees its end while simba is still there.
TEST_F(RunTest, LetsGoOfThePipeWithTheProgram) {
  Process process({"/bin/sh", "-c",
                   tool() + " run --store " + url() +
                       " x -- sh -c 'exec >&-; while [ ! -e seen ]; do sleep 0.01; done' | "
                       "(cat; touch seen; echo end)"},
                  {.directory = file("")});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.out(), "end\n");
}

TEST_F(RunTest, ReleasesAtTheEnd) {
  EXPECT_EQ(simba({"run", "x", "--", "true"}).code, 0);
  EXPECT_EQ(simba({"run", "--wait", "0", "x", "--", "true"}).code, 0);
}

TEST_F(RunTest, TheSecondWaitsForTheFirst) {
  const auto first = start_script({"x"}, "echo $$ > first; while [ ! -e go ]; do sleep 0.01; done");
  ASSERT_GT(pid_in("first"), 0);
  const auto second = start_successor("first");
  // It is asking: nothing tells when a process waits, but what is wrong would show by now.
  EXPECT_EQ(simba({"run", "--wait", "300ms", "x", "--", "true"}).code, exit_code::kNotAcquired);
  EXPECT_FALSE(second->has_ended());
  std::ofstream(file("go")).flush();
  EXPECT_EQ(first->wait(), 0);
  EXPECT_EQ(second->wait(), 0);
  EXPECT_EQ(second->out(), "alone\n");
}

TEST_F(RunTest, GivesUpAfterTheWaitAndSaysWhoHoldsIt) {
  const auto holder = start_script({"--id", "holder", "x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  Result result = simba({"run", "--wait", "0", "x", "--", "touch", "ran"});
  EXPECT_EQ(result.code, exit_code::kNotAcquired);
  EXPECT_THAT(result.err, HasSubstr("'x' was not acquired: held by holder for "));
  result = simba({"run", "--wait", "300ms", "x", "--", "touch", "ran"});
  EXPECT_EQ(result.code, exit_code::kNotAcquired);
  EXPECT_THAT(result.err, HasSubstr("'x' was not acquired within 300ms: held by holder"));
  result = simba({"run", "-q", "--wait", "0", "x", "--", "touch", "ran"});
  EXPECT_EQ(result.code, exit_code::kNotAcquired);
  EXPECT_EQ(result.err, "") << "else a cron job would send mail each time";
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

TEST_F(RunTest, ManyAtOnceRunOneAfterTheOther) {
  std::vector<std::unique_ptr<Process>> all;
  all.reserve(8);
  for (int i = 0; i < 8; ++i) {
    all.push_back(
        start_script({"x"}, "mkdir inside && sleep 0.02 && rmdir inside && echo ok >> log"));
  }
  for (const auto& each : all) EXPECT_EQ(each->wait(), 0) << each->err();
  EXPECT_EQ(read_file(file("log")).size(), 8 * 3U);
}

TEST_F(RunTest, ForwardsSignals) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    std::filesystem::remove(file("ready"));
    const auto process =
        start_script({"x"},
                     "for s in TERM INT HUP QUIT USR1 USR2; do trap \"echo $s; exit 5\" $s; done\n"
                     "echo $$ > ready; while :; do sleep 0.01; done");
    ASSERT_GT(pid_in("ready"), 0);
    process->signal(number);
    EXPECT_EQ(process->wait(), 5);
    EXPECT_EQ(process->out(), std::string(sigabbrev_np(number)) + "\n");
  }
}

TEST_F(RunTest, ASignalEndsTheWaitingAndLeavesNothingBehind) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  const auto waiter = start({"run", "x", "--", "touch", "ran"});
  ASSERT_TRUE(eventually([&] { return guardian_of(*waiter) > 0; }));
  const pid_t guardian = guardian_of(*waiter);
  waiter->signal(SIGTERM);
  EXPECT_EQ(waiter->wait(), 128 + SIGTERM);
  EXPECT_TRUE(eventually([&] { return !is_alive(guardian); }));
  holder->signal(SIGTERM);
  EXPECT_EQ(holder->wait(), 128 + SIGTERM);
  EXPECT_EQ(simba({"run", "--wait", "0", "x", "--", "true"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

TEST_F(RunTest, StaysDeafToWhatItWasToldToIgnore) {
  Process process({"/bin/sh", "-c",
                   "trap '' HUP; SIMBA_STORE=" + url() + " exec " + tool() +
                       " run x -- sh -c 'echo $$ > ready; while [ ! -e go ]; do sleep 0.01; done'"},
                  {.directory = file("")});
  ASSERT_GT(pid_in("ready"), 0);
  process.signal(SIGHUP);
  kill(pid_in("ready"), SIGHUP);
  std::ofstream(file("go")).flush();
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(RunTest, EndsAProgramThatIsHeldTooLong) {
  const auto process =
      start_script({"--max-hold", "500ms", "--kill-after", "200ms", "x"}, "exec sleep 100");
  EXPECT_EQ(process->wait(), exit_code::kLost);
  EXPECT_THAT(process->err(), HasSubstr("--max-hold 500ms"));
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

// Held for longer than the ttl, and there is more left of the lease than without a renewal.
TEST_F(RunTest, RenewsTheLeaseWhileTheProgramRuns) {
  const auto process = start_script({"--ttl", "2s", "--transition", "60s", "x"},
                                    "echo $SIMBA_TOKEN > token; exec sleep 100");
  ASSERT_TRUE(eventually([&] { return read_file(file("token")).ends_with('\n'); }));
  Json seen;
  EXPECT_TRUE(eventually([&] {
    seen = Json::parse(simba({"show", "--json", "x"}).out);
    return seen["held_for_ms"] > 4'000 && seen["lease_left_ms"] > 60'000;
  })) << seen;
  EXPECT_EQ(std::to_string(seen["token"].get<Token>()) + '\n', read_file(file("token")));
}

}  // namespace
}  // namespace simba::cli
