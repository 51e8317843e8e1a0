// watch and release: what operators type when something is wrong.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <csignal>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using Json = nlohmann::json;

// A pipe with little room left: who writes more waits until it is read.
class NarrowPipe {
 public:
  NarrowPipe(const std::filesystem::path& path, int room) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    fd_ = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    filled_ = fcntl(fd_, F_SETPIPE_SZ, 1) - room;  // a page, of which a text that fits takes a part
    const std::string filling(static_cast<std::size_t>(filled_), '\n');
    EXPECT_EQ(write(fd_, filling.data(), filling.size()), filled_);
  }
  ~NarrowPipe() { close(fd_); }
  NarrowPipe(const NarrowPipe&) = delete;
  NarrowPipe& operator=(const NarrowPipe&) = delete;

  bool has_text() const {
    int bytes = 0;
    return ioctl(fd_, FIONREAD, &bytes) == 0 && bytes > filled_;
  }
  // All that has come so far.
  const std::string& read_on() {
    std::array<char, 4096> some{};
    for (ssize_t size = 0; (size = read(fd_, some.data(), some.size())) > 0;) {
      all_.append(some.data(), static_cast<std::size_t>(size));
    }
    return all_;
  }

 private:
  int fd_ = -1, filled_ = 0;
  std::string all_;
};

class OperatingTest : public ToolTest {
 protected:
  std::unique_ptr<Process> hold(const std::string& mutex, const std::string& label,
                                const Words& more = {}) {
    Words arguments{"--id", label, mutex};
    arguments.insert(arguments.begin(), more.begin(), more.end());
    auto holder = start_script(arguments, "echo $$ > pid." + label + "; exec sleep 100");
    EXPECT_GT(pid_in("pid." + label), 0);
    return holder;
  }
  // Long enough that nothing of it ends by itself.
  static Words long_lease() { return {"--ttl", "60s", "--transition", "60s"}; }
  std::string token_of(const std::string& mutex) {
    return std::to_string(Json::parse(simba({"show", "--json", mutex}).out)["token"].get<Token>());
  }
};

TEST_F(OperatingTest, AnEvictedOwnerStopsAndOthersEnterWhenItsLeaseIsOver) {
  const auto owner =
      hold("x", "first", {"--ttl", "2s", "--transition", "4s", "--kill-after", "500ms"});
  const Result result = simba({"release", "x"});
  EXPECT_EQ(result.code, exit_code::kOk) << result.err;
  EXPECT_THAT(
      result.out,
      MatchesRegex("'x' was taken from first~[0-9a-v]+, token [0-9]+: others may take it in "
                   "at most [0-9]+ m?s\n"));
  EXPECT_EQ(simba({"run", "--wait", "30s", "x", "--", "true"}).code, exit_code::kOk);
  EXPECT_EQ(owner->wait(), exit_code::kLost);
}

TEST_F(OperatingTest, NowDoesNotWaitForTheLease) {
  const auto owner = hold("x", "first", long_lease());
  EXPECT_THAT(simba({"release", "--now", "x"}).out, HasSubstr("and is free; until it asks"));
  EXPECT_EQ(simba({"run", "--wait", "0", "x", "--", "true"}).code, exit_code::kOk);
}

TEST_F(OperatingTest, AnEvictionWithoutNowKeepsTheLease) {
  const auto owner = hold("x", "first", long_lease());
  const Json before = Json::parse(simba({"show", "--json", "x"}).out);
  const Json after = Json::parse(simba({"release", "--json", "x"}).out);
  EXPECT_EQ(after["state"], "evicted");
  EXPECT_EQ(after.at("evicted_owner"), before["owner"]);
  EXPECT_EQ(after.at("evicted_token"), before["token"]);
  EXPECT_EQ(after.at("two_may_own"), false);
  EXPECT_GT(after["lease_left_ms"], 0);
  EXPECT_EQ(simba({"run", "--wait", "0", "x", "--", "true"}).code, exit_code::kNotAcquired);
}

TEST_F(OperatingTest, AsJsonNowSaysWhomItHitAndThatTwoMayOwn) {
  const auto owner = hold("x", "first", long_lease());
  const Json before = Json::parse(simba({"show", "--json", "x"}).out);
  const Json after = Json::parse(simba({"release", "--json", "--now", "x"}).out);
  EXPECT_EQ(after["state"], "free");
  EXPECT_EQ(after.at("evicted_owner"), before["owner"]);
  EXPECT_EQ(after.at("evicted_token"), before["token"]);
  EXPECT_EQ(after.at("two_may_own"), true);
}

// Somebody who writes into the store by other means can do that.
TEST_F(OperatingTest, AnOwnerWhoIsStillThereAfterwardsWasNotEvicted) {
  const auto owner = hold("x", "first", long_lease());
  Process trigger({"/usr/bin/sqlite3", file("locks.db"),
                   "CREATE TRIGGER stay BEFORE UPDATE ON simba_mutex BEGIN SELECT RAISE(IGNORE); "
                   "END"},
                  {.directory = file("")});
  ASSERT_EQ(trigger.wait(), 0) << trigger.err();
  const Result text = simba({"release", "x"});
  EXPECT_EQ(text.code, exit_code::kNotAcquired);
  EXPECT_THAT(text.err, MatchesRegex("simba: 'x' is still held by first~[0-9a-v]+, token [0-9]+: "
                                     "try again\n"));
  EXPECT_THAT(text.out, IsEmpty());
  const Result json = simba({"release", "--json", "--now", "x"});
  EXPECT_EQ(json.code, exit_code::kNotAcquired);
  const Json after = Json::parse(json.out);
  EXPECT_EQ(after["state"], "held");
  EXPECT_TRUE(after.at("evicted_owner").is_null());
  EXPECT_TRUE(after.at("evicted_token").is_null());
  EXPECT_EQ(after.at("two_may_own"), false);
}

TEST_F(OperatingTest, WhereNobodyOwnsNobodyIsEvicted) {
  ASSERT_EQ(simba({"init"}).code, exit_code::kOk);
  Result result = simba({"release", "never"});
  EXPECT_EQ(result.code, exit_code::kFree);
  EXPECT_EQ(result.err, "simba: 'never' is free: there is nobody to evict\n");
  EXPECT_THAT(result.out, IsEmpty());
}

TEST_F(OperatingTest, OnlyTheTermWithThatTokenIsEvicted) {
  const auto owner = hold("x", "first", long_lease());
  const std::string token = token_of("x");
  const Result other = simba({"release", "--token", "1", "x"});
  EXPECT_EQ(other.code, exit_code::kFree);
  EXPECT_THAT(other.err, HasSubstr("has token " + token + ", not 1"));
  EXPECT_FALSE(owner->has_ended());
  EXPECT_EQ(simba({"release", "--token", token, "x"}).code, exit_code::kOk);
  const Result wrong = simba({"release", "--token", "1x", "x"});
  EXPECT_EQ(wrong.code, exit_code::kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("'1x'"));
}

TEST_F(OperatingTest, PrintsWhoHasItAndEachChangeUntilItIsInterrupted) {
  auto first = hold("x", "first");
  const auto watching = start({"watch", "x", "y"});
  const auto shows = [&](const std::string& text) {
    return eventually([&] { return watching->out().find(text) != std::string::npos; });
  };
  EXPECT_TRUE(shows("x is held by first, token " + token_of("x")));
  EXPECT_TRUE(shows("y is free"));
  first->signal(SIGTERM);
  first->wait();
  EXPECT_TRUE(shows("x is free, left by first, token ")) << watching->out();
  const auto second = hold("x", "second");
  EXPECT_TRUE(shows("x is held by second, token " + token_of("x"))) << watching->out();
  EXPECT_THAT(watching->out(), MatchesRegex("([0-9:.]+  [xy] is (free|(free, left|held) by [a-z]+, "
                                            "token [0-9]+)\n)+"));
  watching->signal(SIGINT);
  EXPECT_EQ(watching->wait(), 128 + SIGINT);
  EXPECT_THAT(watching->err(), IsEmpty());
}

TEST_F(OperatingTest, WatchWaitsForAFileThatIsNotThereYet) {
  const auto watching = start({"watch", "x"}), interrupted = start({"watch", "x"});
  for (const auto* each : {&watching, &interrupted}) {
    ASSERT_TRUE(eventually([&] { return (*each)->out().ends_with("  x is free\n"); }));
  }
  EXPECT_EQ(interrupted->err(), "simba: there is no file " + file("locks.db").string() + " yet\n");
  interrupted->signal(SIGINT);
  EXPECT_EQ(interrupted->wait(), 128 + SIGINT);
  EXPECT_FALSE(exists(file("locks.db")));
  const auto owner = hold("x", "first");
  EXPECT_TRUE(eventually([&] { return !watching->out().ends_with("free\n"); }));
  EXPECT_THAT(watching->out(), MatchesRegex("[0-9:.]+  x is free\n"
                                            "[0-9:.]+  x is held by first, token [0-9]+\n"));
}

TEST_F(OperatingTest, WatchTellsAnEvictionFromAReleaseAndWhenItIsOver) {
  const auto owner = hold("x", "first", {"--ttl", "2s", "--transition", "2s"});
  const std::string token = token_of("x");
  const auto watching = start({"watch", "x"}), json = start({"watch", "--json", "x"});
  const auto ready = [](const Process& each) { return !each.out().empty(); };
  ASSERT_TRUE(eventually([&] { return ready(*watching) && ready(*json); }));
  ASSERT_EQ(simba({"release", "x"}).code, exit_code::kOk);
  EXPECT_TRUE(eventually([&] { return watching->out().find("is free") != std::string::npos; }));
  EXPECT_THAT(watching->out(),
              MatchesRegex("[0-9:.]+  x is held by first, token [0-9]+\n"
                           "[0-9:.]+  x was taken from first, token " +
                           token +
                           " \\(evicted\\): others may take it in at most [0-9]+ m?s\n"
                           "[0-9:.]+  x is free\n"));
  EXPECT_TRUE(
      eventually([&] { return json->out().find("\"state\":\"free\"") != std::string::npos; }));
  std::istringstream lines(json->out());
  std::string held, evicted, free;
  std::getline(lines, held);
  std::getline(lines, evicted);
  std::getline(lines, free);
  EXPECT_TRUE(Json::parse(held).at("before_owner").is_null());
  const Json object = Json::parse(evicted);
  EXPECT_EQ(object["state"], "evicted");
  EXPECT_TRUE(object["owner"].is_null());
  EXPECT_TRUE(object["token"].is_null());
  EXPECT_EQ(object.at("before_owner"), Json::parse(held)["owner"]);
  EXPECT_EQ(object.at("before_token"), Json::parse(held)["token"]);
  EXPECT_TRUE(Json::parse(free).at("before_owner").is_null()) << "its name was gone before";
}

TEST_F(OperatingTest, AsJsonWatchSaysWhoLeft) {
  auto first = hold("x", "first");
  const auto watching = start({"watch", "--json", "x"});
  ASSERT_TRUE(eventually([&] { return watching->out().find("first~") != std::string::npos; }));
  const std::string token = token_of("x");
  first->signal(SIGTERM);
  first->wait();
  ASSERT_TRUE(eventually([&] { return watching->out().find("free") != std::string::npos; }));
  const std::string all = watching->out();
  const Json left = Json::parse(all.substr(all.find('\n')));
  EXPECT_THAT(left.at("before_owner"), MatchesRegex("first~[0-9a-v]+"));
  EXPECT_EQ(std::to_string(left.at("before_token").get<Token>()), token);
}

// It has looked at x, waits until it can write what y is, and only then begins to observe.
TEST_F(OperatingTest, WatchSeesWhatWasOverBeforeItBeganToObserve) {
  auto owner = hold("x", "first", long_lease());
  NarrowPipe pipe(file("narrow"), 160);
  const Process watching(
      {"/bin/sh", "-c", R"(exec "$0" watch x "$1" > narrow)", tool(), std::string(120, 'y')},
      {.directory = file(""), .environment = {"SIMBA_STORE=" + url()}});
  ASSERT_TRUE(eventually([&] { return pipe.has_text(); }));
  owner->signal(SIGTERM);
  owner->wait();
  EXPECT_TRUE(eventually([&] {
    return pipe.read_on().find("x is free, left by first") != std::string::npos;
  })) << pipe.read_on();
}

TEST_F(OperatingTest, WatchesAsJson) {
  const auto owner = hold("x", "first");
  const auto watching = start({"watch", "--json", "x"});
  ASSERT_TRUE(eventually([&] { return watching->out().find('\n') != std::string::npos; }));
  const Json object = Json::parse(watching->out());
  EXPECT_THAT(object["time"], MatchesRegex("20[0-9-]+T[0-9:]+\\.[0-9]{3}Z"));
  EXPECT_EQ(object["mutex"], "x");
  EXPECT_EQ(object["state"], "held");
  EXPECT_EQ(object["label"], "first");
  EXPECT_THAT(object["owner"], MatchesRegex("first~[0-9a-v]+"));
  EXPECT_EQ(std::to_string(object["token"].get<Token>()), token_of("x"));
}

TEST_F(OperatingTest, AskWhichMutexIsMeant) {
  EXPECT_THAT(simba({"watch"}).err, HasSubstr("which mutexes?"));
  EXPECT_THAT(simba({"release"}).err, HasSubstr("which mutex?"));
  EXPECT_THAT(simba({"relese", "x"}).err, HasSubstr("did you mean 'release'?"));
}

}  // namespace
}  // namespace simba::cli
