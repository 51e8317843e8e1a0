// A program that runs again and again, on the leader.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

class ScheduleTest : public ToolTest {
 protected:
  std::unique_ptr<Process> schedule(const Words& options, const std::string& script) const {
    Words words{"schedule"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"x", "--", "sh", "-c", script});
    return start(words);
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::istringstream text(read_file(file(name)));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
  bool has_lines(const std::string& name, std::size_t count) const {
    return eventually([&] { return lines(name).size() >= count; });
  }
};

TEST_F(ScheduleTest, OneOfManyRunsItAndAnotherGoesOn) {
  const Words options{"--every", "50ms", "--ttl", "1s", "--transition", "500ms"};
  const auto first = schedule(options, "echo $SIMBA_TOKEN >> tokens");
  ASSERT_TRUE(has_lines("tokens", 3));
  const auto second = schedule(options, "echo $SIMBA_TOKEN >> tokens");
  first->signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return lines("tokens").front() != lines("tokens").back(); }));
  const auto tokens = lines("tokens");
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) {
    return std::stoull(a) < std::stoull(b);
  }));
}

TEST_F(ScheduleTest, RunsNeverOverlapAndWhatWasMissedIsSaid) {
  const auto process =
      schedule({"--every", "50ms"},
               "mkdir busy || echo two >> overlap; sleep 0.3; rmdir busy; echo >> runs");
  ASSERT_TRUE(has_lines("runs", 3));
  EXPECT_TRUE(lines("overlap").empty());
  EXPECT_THAT(process->err(), ::testing::ContainsRegex(
                                  "simba: missed [0-9]+ runs of 'x': the last one took [0-9]+ ms"));
}

TEST_F(ScheduleTest, AFailureIsSaidAndTheScheduleGoesOn) {
  const auto process = schedule({"--after", "20ms"}, "echo >> runs; exit 3");
  ASSERT_TRUE(has_lines("runs", 3));
  EXPECT_THAT(process->err(), HasSubstr("simba: the program exited with 3\n"));
  EXPECT_FALSE(process->has_ended());
}

TEST_F(ScheduleTest, WaitsBeforeTheFirstRun) {
  const auto process = schedule({"--every", "50ms", "--initial-delay", "1h"}, "echo >> runs");
  ASSERT_TRUE(eventually([&] { return process->err().find("leads 'x'") != std::string::npos; }));
  process->signal(SIGTERM);
  EXPECT_EQ(process->wait(), 128 + SIGTERM);
  EXPECT_TRUE(lines("runs").empty());
  EXPECT_EQ(simba({"show", "x"}).code, exit_code::kFree);
}

TEST_F(ScheduleTest, ASignalEndsTheRunThatIsUnderWay) {
  const auto process = schedule({"--cron", "* * * * *", "--ttl", "60s"}, "echo >> never");
  ASSERT_TRUE(eventually([&] { return process->err().find("leads 'x'") != std::string::npos; }));
  process->signal(SIGTERM);
  EXPECT_EQ(process->wait(), 128 + SIGTERM);
  const auto running = schedule({"--every", "1h"}, "echo $$ > pid; exec sleep 100");
  const pid_t program = pid_in("pid");
  running->signal(SIGINT);
  EXPECT_EQ(running->wait(), 128 + SIGINT);
  EXPECT_FALSE(is_alive(program));
}

TEST_F(ScheduleTest, WhatIsTypedWrongIsSaid) {
  const auto error = [&](Words words) {
    words.insert(words.begin(), "schedule");
    words.insert(words.end(), {"x", "--", "true"});
    const Result result = simba(words);
    EXPECT_EQ(result.code, exit_code::kUsage);
    return result.err;
  };
  EXPECT_THAT(error({}), HasSubstr("when? Type --every 5m"));
  EXPECT_THAT(error({"--every", "5m", "--after", "5m"}), HasSubstr("One of them:"));
  EXPECT_THAT(error({"--every", "0"}), HasSubstr("longer than 0"));
  EXPECT_THAT(error({"--cron", "61 * * * *"}), HasSubstr("the minute is '61'"));
  EXPECT_THAT(error({"--cron", "@daily", "--initial-delay", "1s"}), HasSubstr("no meaning"));
}

}  // namespace
}  // namespace simba::cli
