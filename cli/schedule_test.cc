// A program that runs again and again, on the leader.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>
#include <regex>
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
  EXPECT_THAT(
      process->err(),
      ::testing::ContainsRegex("simba: missed [0-9]+ runs of 'x': the last one took [0-9.]+ m?s"));
}

TEST_F(ScheduleTest, AFailureIsSaidAndTheScheduleGoesOn) {
  const auto process = schedule({"--after", "20ms"}, "echo >> runs; exit 3");
  ASSERT_TRUE(has_lines("runs", 3));
  EXPECT_THAT(process->err(), HasSubstr("simba: the program exited with 3\n"));
  EXPECT_FALSE(process->has_ended());
}

TEST_F(ScheduleTest, AProgramThatCannotBeRunIsNamed) {
  const auto process = start({"schedule", "-q", "--after", "20ms", "x", "--", "no-such-program"});
  const std::string answer = "simba: cannot run 'no-such-program': no such command in PATH\n";
  EXPECT_TRUE(eventually([&] { return process->err().starts_with(answer + answer); }))
      << process->err();
}

TEST_F(ScheduleTest, QuietIsAboutProgressAndNotAboutErrors) {
  const auto process = schedule({"-q", "--every", "20ms"}, "sleep 0.1; echo >> runs; exit 3");
  ASSERT_TRUE(has_lines("runs", 3));
  EXPECT_THAT(process->err(), HasSubstr("simba: the program exited with 3\n"));
  EXPECT_THAT(process->err(), HasSubstr("simba: missed "));
  EXPECT_THAT(process->err(), ::testing::Not(HasSubstr("leads")));
}

// By the clock of the programs themselves.
TEST_F(ScheduleTest, AfterCountsFromTheEndOfTheLastRun) {
  const auto process =
      schedule({"--after", "300ms"}, "date +%s%3N >> began; sleep 0.2; date +%s%3N >> ended");
  ASSERT_TRUE(has_lines("ended", 4));
  const auto began = lines("began"), ended = lines("ended");
  ASSERT_GE(began.size(), ended.size());
  for (std::size_t i = 1; i < ended.size(); ++i) {
    EXPECT_GE(std::stoll(began[i]), std::stoll(ended[i - 1]) + 300) << "run " << i;
  }
  EXPECT_THAT(process->err(), ::testing::Not(HasSubstr("missed"))) << "none was due meanwhile";
}

TEST_F(ScheduleTest, WaitsBeforeTheFirstRun) {
  const auto process = schedule({"--every", "50ms", "--first-after", "1h"}, "echo >> runs");
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
  ASSERT_GT(program, 0);
  running->signal(SIGINT);
  EXPECT_EQ(running->wait(), 128 + SIGINT);
  EXPECT_FALSE(is_alive(program));
}

// The clock on the wall, as it is said to the program. It is preloaded, and the tool itself takes
// no libraries: the one that somebody outside would build does.
class ClockTest : public ScheduleTest {
 protected:
  ClockTest() {
    std::ofstream(file("clock"), std::ios::binary) << std::string(sizeof(std::int64_t), '\0');
    set_to_second(30);
  }
  void set_to_second(int second) { move(std::chrono::seconds{second - now() % 60}); }
  void move(std::chrono::nanoseconds by) {
    shift_ += by;
    const std::int64_t count = shift_.count();
    const int clock = open(file("clock").c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(clock, &count, sizeof count, 0), static_cast<ssize_t>(sizeof count));
    close(clock);
  }
  std::time_t now() const {
    return std::time(nullptr) + std::chrono::floor<std::chrono::seconds>(shift_).count();
  }
  std::unique_ptr<Process> each_minute(const std::string& script, const Words& options = {}) const {
    Process::Setting setting;
    setting.directory = file(".");
    setting.environment = {"SIMBA_STORE=" + url(), "LD_PRELOAD=" SIMBA_SHIFT_CLOCK,
                           "SIMBA_TEST_CLOCK_FILE=" + file("clock").string()};
    Words command{SIMBA_OUTSIDE_TOOL, "schedule", "--cron", "* * * * *", "--ttl", "2s",
                  "--transition",     "8s"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"x", "--", "sh", "-c", script});
    return std::make_unique<Process>(command, setting);
  }
  // Has written its first line into the file `runs`. It has a dozen seconds to get ready for the
  // next minute: who comes too late runs a minute later, as it should.
  std::unique_ptr<Process> at_the_next_minute(const std::string& script) {
    set_to_second(47);
    started_ = now() / 60;
    auto process = each_minute(script);
    EXPECT_TRUE(has_lines("runs", 1)) << process->err();
    return process;
  }
  std::time_t minute_of_the_start() const { return started_; }
  static bool says(const Process& process, const std::string& pattern) {
    return eventually([&] { return std::regex_search(process.err(), std::regex(pattern)); });
  }
  // It waits, or is about to: from then on it knows what was due.
  bool has_opened_the_store(const Process& process) const {
    return eventually([&] {
      std::error_code error;
      const std::filesystem::path open = "/proc/" + std::to_string(process.pid()) + "/fd";
      for (const auto& each : std::filesystem::directory_iterator(open, error)) {
        if (read_symlink(each.path(), error) == file("locks.db")) return true;
      }
      return false;
    });
  }

 private:
  std::chrono::nanoseconds shift_{0};
  std::time_t started_ = 0;
};

TEST_F(ClockTest, TheProgramRunsWhenTheMinuteBegins) {
  const auto process = at_the_next_minute("echo $(($(date +%s) / 60)) >> runs");
  ASSERT_FALSE(lines("runs").empty()) << process->err();
  EXPECT_EQ(std::stoll(lines("runs").front()), minute_of_the_start() + 1) << process->err();
  EXPECT_EQ(lines("runs").size(), 1U) << "once";
}

TEST_F(ClockTest, WhatWasDueWhileThisProcessDidNotLeadIsSaidToWhoWantsQuietToo) {
  const auto other = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  const pid_t owner = pid_in("pid");
  ASSERT_GT(owner, 0);
  const auto process = each_minute("true", {"-q"});
  ASSERT_TRUE(has_opened_the_store(*process));
  move(std::chrono::minutes{3});
  kill(owner, SIGTERM);
  EXPECT_TRUE(says(*process,
                   "simba: [345] runs of 'x' were due while this process did not lead: missed, "
                   "unless another leader ran them\n"))
      << process->err();
}

TEST_F(ClockTest, WhatARunThatWasLostMadeItMissIsSaid) {
  const auto process = at_the_next_minute("echo >> runs; exec sleep 100");
  ASSERT_FALSE(lines("runs").empty()) << process->err();
  move(std::chrono::minutes{3});
  evict("x", Eviction::kFreeNow);
  EXPECT_TRUE(says(*process, "simba: missed [23] runs of 'x': the last one took "))
      << process->err();
  EXPECT_TRUE(says(*process,
                   "simba: 1 run of 'x' was due while this process did not lead: missed, "
                   "unless another leader ran it\n"))
      << process->err();
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
  EXPECT_THAT(error({"--every", "5m", "--after", "5m"}), HasSubstr("Type only one of --every 5m"));
  EXPECT_THAT(error({"--every", "0"}), HasSubstr("longer than 0"));
  EXPECT_THAT(error({"--cron", "61 * * * *"}), HasSubstr("the minute is '61'"));
  EXPECT_THAT(error({"--cron", "@daily", "--first-after", "1s"}), HasSubstr("no meaning"));
}

}  // namespace
}  // namespace simba::cli
