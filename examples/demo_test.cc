// What script/run says of the demo, and when it fails.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include "cli/tool_fixture.h"
#include "examples/demo_verdict.h"

namespace simba::demo {
namespace {

using cli::eventually;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr auto kAcquired = Line::Kind::kAcquired;
constexpr auto kTick = Line::Kind::kTick;

std::optional<std::string> verdict_on(const std::vector<Line>& lines) {
  Verdict verdict;
  for (const Line& line : lines) verdict.hear(line);
  return verdict.objection();
}

TEST(DemoVerdictTest, LeadersOneAfterTheOtherAreFine) {
  EXPECT_EQ(verdict_on({{kAcquired, 7, 1, 0, 1},
                        {kTick, 7, 1, 5, 9},
                        {kAcquired, 8, 2, 9, 10},
                        {kTick, 8, 2, 12, 14}}),
            std::nullopt);
}

TEST(DemoVerdictTest, TwoWhoWorkedAtOnceAreTwoOwners) {
  const std::optional<std::string> two = "two processes led at once";
  EXPECT_EQ(verdict_on({{kTick, 7, 1, 5, 9}, {kAcquired, 8, 2, 8, 10}}), two);
  EXPECT_EQ(verdict_on({{kAcquired, 8, 2, 8, 10}, {kTick, 7, 1, 5, 9}}), two) << "told late";
  EXPECT_EQ(verdict_on({{kTick, 7, 1, 5, 9}, {kTick, 8, 2, 6, 7}}), two);
}

TEST(DemoVerdictTest, ASmallerTokenAfterALargerOneIsTwoOwners) {
  EXPECT_EQ(verdict_on({{kAcquired, 7, 1, 0, 1}, {kAcquired, 8, 2, 2, 3}, {kTick, 7, 1, 4, 5}}),
            "two processes led at once");
}

TEST(DemoVerdictTest, OneLeaderAloneIsNoTakeover) {
  EXPECT_EQ(verdict_on({{kAcquired, 7, 1, 0, 1}, {kTick, 7, 1, 2, 3}}), "nobody took over");
  EXPECT_EQ(verdict_on({}), "nobody took over");
}

// script/run in a tree of its own, whose release build is the demo as it was built here.
class DemoTest : public cli::ToolTest {
 protected:
  DemoTest() {
    fs::create_directories(file("script"));
    fs::create_directories(file("build/release/examples"));
    fs::create_directory(file("tmp"));
    for (const char* script : {"run", "lib.sh"}) {
      fs::create_symlink(fs::path(SIMBA_SOURCE) / "script" / script, file("script") / script);
    }
    std::ofstream(file("script/bootstrap")) << "#!/bin/sh\n";
    fs::permissions(file("script/bootstrap"), fs::perms{0755});
    std::ofstream(file("build/release/build.ninja")) << "build simba_demo: phony\n";
    fs::create_symlink(tool(), file("build/release/examples/simba_demo"));
  }
  std::unique_ptr<cli::Process> begin() const {
    return std::make_unique<cli::Process>(
        cli::Words{file("script/run")},
        cli::Process::Setting{file(""), "", {"TMPDIR=" + file("tmp").string()}});
  }
  static bool says(const cli::Process& demo, const std::string& text) {
    return eventually([&] { return demo.out().find(text) != std::string::npos; });
  }
  bool leaves_nothing_behind() const { return fs::is_empty(file("tmp")); }
};

TEST_F(DemoTest, EndsWellWithinHalfAMinute) {
  const auto began = steady_clock::now();
  const auto demo = begin();
  EXPECT_EQ(demo->wait(), 0) << demo->out() << demo->err();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds{30});
  EXPECT_THAT(demo->out(), HasSubstr(" takes over, token "));
  EXPECT_THAT(demo->out(), HasSubstr("Three leaders, one at a time, each with a larger token."));
  EXPECT_TRUE(leaves_nothing_behind());
}

TEST_F(DemoTest, FailsWithinHalfAMinuteWhenNobodyTakesOver) {
  const auto began = steady_clock::now();
  const auto demo = begin();
  ASSERT_TRUE(says(*demo, "is killed (SIGKILL)")) << demo->out() << demo->err();
  std::vector<pid_t> heirs = cli::children_of(demo->pid());             // seconds from entering
  std::erase_if(heirs, [](pid_t pid) { return !cli::is_alive(pid); });  // the script's
  ASSERT_EQ(heirs.size(), 2U);
  for (const pid_t heir : heirs) kill(heir, SIGSTOP);
  EXPECT_EQ(demo->wait(), 1) << demo->out();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds{30});
  EXPECT_THAT(demo->out(), HasSubstr("FAILED: nobody took over\n"));
  for (const pid_t heir : heirs) EXPECT_FALSE(cli::is_alive(heir));
  EXPECT_TRUE(leaves_nothing_behind());
}

TEST_F(DemoTest, WhatEndsItFromOutsideLeavesNothingBehind) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto demo = begin();
    ASSERT_TRUE(says(*demo, " leads, token ")) << demo->out() << demo->err();
    const std::vector<pid_t> contenders = cli::children_of(demo->pid());
    demo->signal(signal);
    EXPECT_EQ(demo->wait(), 128 + signal) << demo->out();
    for (const pid_t contender : contenders) EXPECT_FALSE(cli::is_alive(contender));
    EXPECT_TRUE(leaves_nothing_behind()) << strsignal(signal);
  }
}

// The pipe of which a process has both ends.
std::string own_pipe_of(pid_t pid) {
  std::map<std::string, int> ends;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code closed;
    const std::string target = fs::read_symlink(entry, closed);
    if (target.starts_with("pipe:") && ++ends[target] == 2) return entry.path();
  }
  return "";
}

TEST_F(DemoTest, FailsWhenItWasToldOfTwoOwners) {
  const auto demo = begin();
  ASSERT_TRUE(says(*demo, " leads, token ")) << demo->out() << demo->err();
  const int pipe = open(own_pipe_of(demo->pid()).c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  const Line always{kTick, 1, 1, 0, std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(write(pipe, &always, sizeof always), static_cast<ssize_t>(sizeof always));
  close(pipe);
  EXPECT_EQ(demo->wait(), 1) << demo->out();
  EXPECT_THAT(demo->out(), HasSubstr("FAILED: two processes led at once\n"));
  EXPECT_THAT(demo->out(), Not(HasSubstr("one at a time")));
}

}  // namespace
}  // namespace simba::demo
