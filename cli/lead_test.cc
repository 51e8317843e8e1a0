// A program that runs on the leader.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class LeadTest : public ToolTest {
 protected:
  // `simba lead OPTIONS x -- sh -c SCRIPT`
  std::unique_ptr<Process> lead(const Words& options, const std::string& script) const {
    Words words{"lead"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"x", "--", "sh", "-c", script});
    return start(words);
  }
  Words lines(const std::string& name) const {
    std::istringstream text(read_file(file(name)));
    Words all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
  bool has_lines(const std::string& name, std::size_t count) const {
    return eventually([&] { return lines(name).size() >= count; });
  }
};

TEST_F(LeadTest, AnotherHostTakesOverWhenTheLeaderIsKilled) {
  const std::string script =
      "test -e pid && kill -0 $(cat pid) && echo two >> overlap; "
      "echo $$ > pid; echo $SIMBA_TOKEN >> tokens; exec sleep 100";
  const auto first = lead(kLongLease, script);
  ASSERT_TRUE(has_lines("tokens", 1));
  const pid_t program = pid_in("pid");
  const auto second = lead(kLongLease, script);
  first->signal(SIGKILL);
  ASSERT_TRUE(has_lines("tokens", 2));
  EXPECT_FALSE(is_alive(program));
  EXPECT_LT(std::stoull(lines("tokens")[0]), std::stoull(lines("tokens")[1]));
  EXPECT_THAT(lines("overlap"), IsEmpty());
}

TEST_F(LeadTest, AProgramThatFailsIsStartedAgainInTheSameTerm) {
  const auto leader =
      lead({"--delay", "20ms", "--hand-over-after", "0"}, "echo $SIMBA_TOKEN >> tokens; exit 3");
  ASSERT_TRUE(has_lines("tokens", 4));
  const Words tokens = lines("tokens");
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), 1U);
  EXPECT_THAT(leader->err(), HasSubstr("simba: the program exited with 3: again in 20 ms"));
  EXPECT_THAT(leader->err(), HasSubstr("exited with 3: again in 40 ms")) << "it doubles";
}

TEST_F(LeadTest, AnExitWithoutFailureIsTheEnd) {
  const auto leader = lead({}, "exit 0");
  EXPECT_EQ(leader->wait(), 0);
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(LeadTest, AlwaysRunsAlsoWhatEndedWell) {
  const auto leader = lead({"--restart", "always", "--delay", "10ms"}, "echo >> runs");
  EXPECT_TRUE(has_lines("runs", 3));
}

TEST_F(LeadTest, NeverEndsWithTheProgramsStatus) {
  EXPECT_EQ(lead({"--restart", "never"}, "exit 3")->wait(), 3);
  EXPECT_EQ(simba({"lead", "--restart", "never", "x", "--", "/no/such/program"}).code,
            exit_code::kNotFound);
}

TEST_F(LeadTest, ASignalEndsTheProgramAndReleasesTheMutex) {
  const auto leader = lead({},
                           "trap 'echo asked > asked; exit 0' TERM; echo $$ > pid; "
                           "while :; do sleep 0.02; done");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  leader->signal(SIGTERM);
  EXPECT_EQ(leader->wait(), 128 + SIGTERM);
  EXPECT_EQ(lines("asked"), Words{"asked"});
  EXPECT_FALSE(is_alive(program));
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(LeadTest, AProgramThatIgnoresTermIsKilled) {
  const auto leader =
      lead({"--kill-after", "200ms"}, "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  leader->signal(SIGINT);
  EXPECT_EQ(leader->wait(), 128 + SIGINT);
  EXPECT_FALSE(is_alive(program));
}

TEST_F(LeadTest, ASignalEndsItAlsoBetweenTwoRunsAndWhileItWaits) {
  const auto leader = lead({"--delay", "100s"}, "echo >> runs; exit 1");
  ASSERT_TRUE(eventually([&] { return leader->err().find("again in") != std::string::npos; }));
  const auto waiting = lead({}, "echo >> never");
  leader->signal(SIGTERM);
  EXPECT_EQ(leader->wait(), 128 + SIGTERM);
  ASSERT_TRUE(has_lines("never", 1));
}

TEST_F(LeadTest, WhatFailsAgainAndAgainIsLeftToAnother) {
  const auto first = lead({"--delay", "10ms", "--hand-over-after", "2"}, "echo >> failed; exit 1");
  ASSERT_TRUE(has_lines("failed", 1));
  const auto second = lead({}, "echo >> well; exec sleep 100");
  EXPECT_TRUE(has_lines("well", 1));
  EXPECT_THAT(first->err(), HasSubstr("2 times in a row: leaves 'x' to another"));
}

TEST_F(LeadTest, WhoLostTheMutexEndsTheProgramAndContendsAgain) {
  const auto leader =
      lead(kLongLease, "echo $$ > pid; echo $SIMBA_TOKEN >> tokens; exec sleep 100");
  ASSERT_TRUE(has_lines("tokens", 1));
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  evict("x", Eviction::kFreeNow);
  ASSERT_TRUE(has_lines("tokens", 2));
  EXPECT_FALSE(is_alive(program));
  EXPECT_THAT(leader->err(), HasSubstr("simba: lost 'x' (evicted): the program was ended"));
}

TEST_F(LeadTest, ProgramsHaveTheStandardStreamsEachTime) {
  const auto leader = lead({"--delay", "10ms", "-q"}, "echo out; echo err >&2; exit 1");
  EXPECT_TRUE(eventually([&] {
    const std::string out = leader->out(), err = leader->err();
    return out.starts_with("out\nout\n") &&
           err.starts_with("err\nsimba: the program exited with 1: again in 10 ms\nerr\n");
  })) << leader->out()
      << leader->err();
}

TEST_F(LeadTest, WithoutItsGuardianTheProgramEndsAndSoDoesTheCommand) {
  for (const char* command : {"lead", "schedule"}) {
    std::filesystem::remove(file("pid"));
    Words words{command, "x",  "--",
                "sh",    "-c", "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"};
    if (std::string(command) == "schedule") words.insert(words.begin() + 1, {"--every", "1h"});
    const auto leader = start(words);
    const pid_t program = pid_in("pid");
    const pid_t guardian = guardian_of(*leader);
    ASSERT_GT(program, 0) << command;
    ASSERT_GT(guardian, 0) << command;
    kill(guardian, SIGKILL);
    EXPECT_EQ(leader->wait(), exit_code::kUnguarded) << command;
    EXPECT_THAT(leader->err(), HasSubstr("the guardian process was killed or stopped"));
    EXPECT_FALSE(is_alive(program)) << command;
    EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree) << command;
  }
}

TEST_F(LeadTest, WhileTheLeaderIsStoppedItsProgramEndsBeforeAnotherEnters) {
  const auto leader = lead(kLongLease, "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done");
  ASSERT_GT(pid_in("pid"), 0);
  leader->signal(SIGSTOP);
  const auto successor = start_successor("pid");
  EXPECT_EQ(successor->wait(), 0);
  EXPECT_EQ(successor->out(), "alone\n");
  leader->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return leader->err().find("lost 'x'") != std::string::npos; }))
      << leader->err();
}

TEST_F(LeadTest, QuietIsAboutProgressAndNotAboutErrors) {
  const auto leader = lead({"-q", "--restart", "never"}, "exit 3");
  EXPECT_EQ(leader->wait(), 3);
  EXPECT_EQ(leader->err(), "simba: the program exited with 3\n");
  const auto lost = lead({"-q", "--ttl", "2s", "--transition", "8s"}, "echo $$ > pid; sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  evict("x");
  EXPECT_TRUE(eventually([&] { return !lost->err().empty(); }));
  EXPECT_EQ(lost->err(), "simba: lost 'x' (evicted): the program was ended\n");
}

// A journal, in which nothing can be painted over.
TEST_F(LeadTest, WhoIsWaitedForIsSaidOnceWhereThereIsNoTerminal) {
  const auto owner = start_script({"--id", "first", "x"}, "echo $$ > pid; exec sleep 100");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0);
  const auto leader = start({"lead", "x", "--", "sleep", "100"});
  const auto cron = start({"schedule", "--every", "1h", "x", "--", "true"});
  const auto quiet = start({"lead", "-q", "--restart", "never", "x", "--", "touch", "ran"});
  const std::string waits =
      "simba: waits for 'x': held by first for [0-9.]+ m?s, lease ends in at most [0-9]+ s\n";
  for (const auto* each : {&leader, &cron}) {
    EXPECT_TRUE(eventually([&] { return !(*each)->err().empty(); }));
    EXPECT_THAT((*each)->err(), MatchesRegex(waits));
    (*each)->signal(SIGTERM);
    EXPECT_EQ((*each)->wait(), 128 + SIGTERM);
    EXPECT_THAT((*each)->err(), MatchesRegex(waits)) << "once";
  }
  kill(program, SIGTERM);
  EXPECT_EQ(quiet->wait(), 0);
  EXPECT_EQ(quiet->err(), "");
}

TEST_F(LeadTest, AProgramThatCannotBeRunIsNamed) {
  const Result once = simba({"lead", "-q", "--restart", "never", "x", "--", "no-such-program"});
  EXPECT_EQ(once.code, exit_code::kNotFound);
  EXPECT_EQ(once.err, "simba: cannot run 'no-such-program': no such command in PATH\n");
  const auto again = start({"lead", "--delay", "20ms", "x", "--", "echo hello"});
  const std::string answer =
      "simba: cannot run 'echo hello': no such command in PATH; leave the quotes out, or write "
      "sh -c before it: again in 20 ms\n";
  EXPECT_TRUE(eventually([&] { return again->err().find(answer) != std::string::npos; }))
      << again->err();
}

TEST_F(LeadTest, WhatIsTypedWrongIsSaid) {
  EXPECT_THAT(simba({"lead", "--restart", "sometimes", "x", "--", "true"}).err,
              HasSubstr("--restart is 'sometimes'; it can be on-failure, always or never"));
  EXPECT_THAT(simba({"lead", "--hand-over-after", "-1", "x", "--", "true"}).err,
              HasSubstr("it can be a number from 0"));
  EXPECT_THAT(simba({"lead", "x", "true"}).err,
              HasSubstr("put -- before the program: simba lead x -- true"));
  EXPECT_EQ(simba({"lead", "x"}).code, exit_code::kUsage);
}

}  // namespace
}  // namespace simba::cli
