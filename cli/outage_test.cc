// A server that goes away and comes back, under commands that stay.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/exit_codes.h"
#include "cli/shell_fixture.h"
#include "testing/servers/redis.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OutageTest : public ToolTest {
 protected:
  void SetUp() override {
    try {
      servers::need_redis();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    server_ = std::make_unique<servers::RedisServer>(settings());
    server_->start();
  }
  virtual servers::RedisSettings settings() const { return {}; }
  servers::RedisServer& server() { return *server_; }
  std::unique_ptr<Process> begin(const Words& arguments) const {
    Process::Setting setting;
    setting.environment = {"SIMBA_STORE=" + server_->url("restart-guard=off")};
    return start(arguments, setting);
  }
  // `after` so many characters that it said before.
  static bool says(const Process& process, const std::string& text, std::size_t after = 0) {
    return eventually([&] { return process.err().find(text, after) != std::string::npos; });
  }
  static bool prints(const Process& process, const std::string& text) {
    return eventually([&] { return process.out().find(text) != std::string::npos; });
  }
  std::size_t lines_of(const std::string& name) const {
    const std::string text = read_file(file(name));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

 private:
  std::unique_ptr<servers::RedisServer> server_;
};

TEST_F(OutageTest, ALeaderEndsItsProgramAndLeadsAgainWhenTheServerIsBack) {
  const auto leader =
      begin({"lead", "--ttl", "2s", "--transition", "2s", "--kill-after", "500ms", "x", "--", "sh",
             "-c", "echo $$ > pid; echo $SIMBA_TOKEN >> tokens; exec sleep 100"});
  ASSERT_TRUE(eventually([&] { return lines_of("tokens") >= 1; })) << leader->err();
  const pid_t first = pid_in("pid");
  ASSERT_GT(first, 0);
  const std::size_t said = leader->err().size();
  server().stop();
  EXPECT_TRUE(says(*leader, "lost 'x'", said)) << leader->err();
  EXPECT_FALSE(is_alive(first));
  const std::size_t before = lines_of("tokens");
  server().start();
  EXPECT_TRUE(eventually([&] { return lines_of("tokens") > before; })) << leader->err();
  leader->signal(SIGTERM);
  EXPECT_EQ(leader->wait(), 128 + SIGTERM);
}

TEST_F(OutageTest, AScheduleGoesOnWhenTheServerIsBack) {
  const auto schedule = begin({"schedule", "--every", "100ms", "--ttl", "2s", "--transition", "2s",
                               "x", "--", "sh", "-c", "echo $SIMBA_TOKEN >> tokens"});
  ASSERT_TRUE(eventually([&] { return lines_of("tokens") >= 1; })) << schedule->err();
  const std::size_t said = schedule->err().size();
  server().stop();
  EXPECT_TRUE(says(*schedule, "lost 'x'", said)) << schedule->err();
  const std::size_t before = lines_of("tokens");
  server().start();
  EXPECT_TRUE(eventually([&] { return lines_of("tokens") > before; })) << schedule->err();
}

TEST_F(OutageTest, AWatcherSaysThatTheServerIsAwayAndGoesOnWhenItIsBack) {
  const auto watcher = begin({"watch", "x"});
  ASSERT_TRUE(prints(*watcher, "x is free")) << watcher->err();
  server().stop();
  ASSERT_TRUE(says(*watcher, "the store's trouble, tried again")) << watcher->err();
  EXPECT_FALSE(watcher->has_ended());
  server().start();
  EXPECT_TRUE(says(*watcher, "the store answers again")) << watcher->err();
  const auto holder = begin({"run", "--id", "holder", "x", "--", "sleep", "100"});
  EXPECT_TRUE(prints(*watcher, "x is held by holder")) << watcher->out() << watcher->err();
}

TEST_F(OutageTest, WhoWaitsGoesOnWaiting) {
  const auto holder = begin({"run", "x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"});
  ASSERT_GT(pid_in("pid"), 0);
  const auto waiting = begin({"lead", "x", "--", "touch", "led"});
  server().stop();
  EXPECT_TRUE(says(*waiting, "redis")) << waiting->err();
  EXPECT_FALSE(waiting->has_ended());
  server().start();  // and has forgotten everything
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(file("led")); })) << waiting->err();
}

TEST_F(OutageTest, ThatTheServerIsAwayIsSaidAlsoWhereNobodySeesAProgressLine) {
  server().stop();
  const auto run = begin({"run", "x", "--", "true"});
  const auto quiet = begin({"run", "-q", "y", "--", "true"});
  const auto leader = begin({"lead", "-q", "z", "--", "true"});
  EXPECT_TRUE(says(*run, "simba: the store's trouble, tried again")) << run->err();
  EXPECT_FALSE(run->has_ended());
  const auto bounded = begin({"run", "--wait", "200ms", "x", "--", "true"});
  EXPECT_EQ(bounded->wait(), exit_code::kUnavailable);
  EXPECT_THAT(bounded->err(), Not(HasSubstr("tried again"))) << "it is not";
  server().start();
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_EQ(quiet->wait(), 0);
  EXPECT_EQ(leader->wait(), 0);
  for (const auto* each : {&quiet, &leader}) {
    EXPECT_THAT((*each)->err(), HasSubstr("simba: the store's trouble, tried again"));
    EXPECT_THAT((*each)->err(), Not(HasSubstr("leads")));
  }
}

// Of a server that remembers.
class ShortOutageTest : public OutageTest {
 protected:
  servers::RedisSettings settings() const override {
    servers::RedisSettings remembering;
    remembering.config = {{"appendonly", "yes"}, {"appendfsync", "always"}};
    return remembering;
  }
  // What `simba show` says of x; empty while the server is away.
  nlohmann::json shown() const {
    const auto show = begin({"show", "--json", "x"});
    return show->wait() == exit_code::kOk ? nlohmann::json::parse(show->out())
                                          : nlohmann::json::object();
  }
};

TEST_F(ShortOutageTest, AProgramGoesOnInTheSameTermWhenTheServerIsBackWithinTheLease) {
  const auto run = begin({"run", "--ttl", "2s", "--transition", "58s", "x", "--", "sh", "-c",
                          "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; exit 9"});
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0) << run->err();
  const nlohmann::json before = shown();
  ASSERT_EQ(before.value("state", ""), "held");
  server().stop();
  ASSERT_TRUE(says(*run, "the store's trouble, tried again")) << "a renewal has failed";
  EXPECT_TRUE(is_alive(program));
  server().start();
  const auto is_renewed = [&] { return shown().value("lease_left_ms", 0) > 59'000; };
  EXPECT_TRUE(eventually(is_renewed)) << shown() << run->err();
  EXPECT_EQ(shown().value("token", 0UL), before.value("token", 1UL));
  EXPECT_TRUE(is_alive(program));
  std::ofstream(file("go")).close();
  EXPECT_EQ(run->wait(), 9) << run->err();
  EXPECT_THAT(run->err(), Not(HasSubstr("lost")));
}

// The mutex is still ours, but what begins now might have to be ended at once.
TEST_F(ShortOutageTest, AScheduleBeginsNothingWhileItsRenewalIsLate) {
  const auto schedule = begin({"schedule", "--every", "50ms", "--ttl", "2s", "--transition", "58s",
                               "x", "--", "sh", "-c", "echo $SIMBA_TOKEN >> tokens"});
  ASSERT_TRUE(eventually([&] { return lines_of("tokens") >= 2; })) << schedule->err();
  server().stop();
  std::size_t before = 0;
  const auto rests = [&] {
    before = lines_of("tokens");
    std::this_thread::sleep_for(std::chrono::milliseconds{500});
    return lines_of("tokens") == before;
  };
  ASSERT_TRUE(eventually(rests)) << "runs begin though no renewal has come for long";
  server().start();
  EXPECT_TRUE(eventually([&] { return lines_of("tokens") > before; })) << schedule->err();
  EXPECT_THAT(schedule->err(), Not(HasSubstr("lost")));
}

TEST_F(OutageTest, ThatTheServerStandsStillIsSaidInTheProgressLine) {
  const auto holder =
      begin({"run", "--ttl", "1h", "x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"});
  ASSERT_GT(pid_in("pid"), 0);
  Shell shell(file(""), server().url("restart-guard=off"));
  shell.type(tool() + " run --ttl 1h x -- true\n");
  ASSERT_TRUE(shell.shows("waiting for x: held by ")) << shell.recent();
  server().pause();
  EXPECT_TRUE(shell.shows("waiting for x: the store does not answer: redis")) << shell.recent();
  shell.look_anew();
  server().resume();
  EXPECT_TRUE(shell.shows("waiting for x: held by ")) << shell.recent();
}

// However long the lease is, and so the time that an answer could take: here 450 s.
TEST_F(OutageTest, AServerThatStandsStillHoldsNobodyUpForLong) {
  const auto holder = begin({"run", "x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"});
  ASSERT_GT(pid_in("pid"), 0);
  Shell shell(file(""), server().url("restart-guard=off"));
  shell.type(tool() + " run --ttl 1h x -- true\n");
  ASSERT_TRUE(shell.shows("waiting for x: held by ")) << shell.recent();
  server().pause();
  shell.type(kCtrlC);
  EXPECT_TRUE(shell.shows("\n> ")) << shell.recent();
  shell.type("echo co''de=$?\n");
  EXPECT_TRUE(shell.shows("code=130")) << shell.recent();
  const auto run = begin({"run", "--ttl", "1h", "--wait", "200ms", "x", "--", "true"});
  EXPECT_EQ(run->wait(), exit_code::kUnavailable) << run->err();
  server().resume();
}

}  // namespace
}  // namespace simba::cli
