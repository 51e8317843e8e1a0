// ls, show, version, help, and what people type wrong.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include <regex>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;

class ListingTest : public ToolTest {
 protected:
  std::unique_ptr<Process> hold(const std::string& mutex, const std::string& label) {
    auto holder =
        start_script({"--id", label, mutex}, "echo $$ > pid." + label + "; exec sleep 100");
    EXPECT_GT(pid_in("pid." + label), 0);
    return holder;
  }
};

TEST_F(ListingTest, ListsWhatIsHeld) {
  const auto a = hold("app/one", "first");
  const auto b = hold("web", "second");
  EXPECT_EQ(simba({"run", "app/free", "--", "true"}).code, 0);
  const Result all = simba({"ls"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, MatchesRegex("MUTEX    OWNER   HELD FOR  +LEASE LEFT  TOKEN\n"
                                    "app/one  first   [0-9.]+ m?s  +[0-9.]+ s +[0-9]+\n"
                                    "web      second  [0-9.]+ m?s  +[0-9.]+ s +[0-9]+\n"));
  EXPECT_THAT(simba({"ls", "app/"}).out, Not(HasSubstr("web")));
  EXPECT_THAT(simba({"ls", "--all", "app/"}).out, HasSubstr("app/free  (free)"));
}

TEST_F(ListingTest, ListsAsJson) {
  const auto holder = hold("app/one", "first");
  const Result result = simba({"ls", "--json"});
  const Json object = Json::parse(result.out);
  EXPECT_EQ(object["mutex"], "app/one");
  EXPECT_EQ(object["state"], "held");
  EXPECT_EQ(object["label"], "first");
  EXPECT_THAT(object["owner"], MatchesRegex("first~[0-9a-v]+"));
  EXPECT_GE(object["held_for_ms"], 0);
  EXPECT_GT(object["lease_left_ms"], 0);
  EXPECT_LE(object["lease_left_ms"], 16'000);
  EXPECT_GT(object["token"], 0);
}

TEST_F(ListingTest, ListsNamesAlone) {
  ASSERT_EQ(simba({"run", "free one", "--", "true"}).code, 0);
  const auto holder = start_script({"held"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  EXPECT_EQ(simba({"ls", "--names"}).out, "held\n");
  EXPECT_EQ(simba({"ls", "--names", "--all"}).out, "free one\nheld\n");
  EXPECT_EQ(simba({"ls", "--names", "--all", "free"}).out, "free one\n");
  EXPECT_EQ(simba({"ls", "--names", "--json"}).code, exit_code::kUsage);
}

TEST_F(ListingTest, ListsMoreThanOnePageInOrder) {
  constexpr std::size_t kHeld = 10'500;
  const auto name = [](std::size_t i) { return "m" + std::to_string(100'000 + i); };
  Client client = connect(url());
  for (std::size_t from = 0; from < kHeld; from += 500) {
    std::vector<std::string> names;
    for (std::size_t i = from; i < from + 500; ++i) names.push_back(name(i));
    std::vector<Claim> claims;
    for (const std::string& each : names) claims.push_back({each, "a~1", 0, 0, 10min, 1min});
    client.store().contend(claims, BootClock::now() + 60s);
  }
  const Result result = simba({"ls", "--json", "m1"});
  EXPECT_EQ(result.code, 0);
  std::istringstream lines(result.out);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_EQ(Json::parse(line)["mutex"], name(count));
  }
  EXPECT_EQ(count, kHeld);
}

TEST_F(ListingTest, SaysThatNothingIsHeld) {
  ASSERT_EQ(simba({"init"}).code, exit_code::kOk);
  Result result = simba({"ls"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(result.err, "simba: no mutex is held\n");
  result = simba({"ls", "--json"});
  EXPECT_THAT(result.out + result.err, IsEmpty());
}

TEST_F(ListingTest, ShowsWhoHoldsAMutex) {
  const auto holder = hold("x", "first");
  const Result result = simba({"show", "x"});
  EXPECT_EQ(result.code, exit_code::kOk);
  EXPECT_THAT(result.out, MatchesRegex("x is held\n  owner       first~[0-9a-v]+\n"
                                       "  held for    [0-9.]+ m?s\n  lease left  [0-9.]+ s\n"
                                       "  token       [0-9]+\n"));
  EXPECT_EQ(Json::parse(simba({"show", "x", "--json"}).out)["state"], "held");
}

TEST_F(ListingTest, WhoLooksMakesNoFile) {
  const std::string note = "simba: there is no file " + file("locks.db").string() + " yet\n";
  const Result all = simba({"ls"});
  EXPECT_EQ(all.code, exit_code::kOk);
  EXPECT_EQ(all.out + all.err, note + "simba: no mutex is held\n");
  const Result names = simba({"ls", "--all", "--names"});
  EXPECT_EQ(names.code, exit_code::kOk);
  EXPECT_EQ(names.out + names.err, note);
  const Result shown = simba({"show", "x"});
  EXPECT_EQ(shown.code, exit_code::kFree);
  EXPECT_EQ(shown.out + shown.err, "x is free\n" + note);
  const Result json = simba({"show", "--json", "x"});
  EXPECT_EQ(json.code, exit_code::kFree);
  EXPECT_EQ(Json::parse(json.out)["state"], "free");
  const Result released = simba({"release", "x"});
  EXPECT_EQ(released.code, exit_code::kFree);
  EXPECT_EQ(released.err, note + "simba: 'x' is free: there is nobody to evict\n");
  EXPECT_EQ(simba({"show", "x\ny"}).code, exit_code::kUsage) << "what is wrong is wrong there too";
  EXPECT_FALSE(exists(file("locks.db")));
  EXPECT_FALSE(exists(file("locks.db-bell")));
}

TEST_F(ListingTest, ALinkToNothingIsNoStoreThatIsNotThereYet) {
  std::filesystem::create_symlink(file("nowhere"), file("link.db"));
  const Result result = simba({"show", "--store", "sqlite:" + file("link.db").string(), "x"});
  EXPECT_EQ(result.code, exit_code::kUsage);
  EXPECT_THAT(result.err, Not(HasSubstr("yet")));
}

TEST_F(ListingTest, ShowsAFreeMutex) {
  Result result = simba({"show", "never"});
  EXPECT_EQ(result.code, exit_code::kFree);
  EXPECT_EQ(result.out, "never is free\n");
  EXPECT_EQ(simba({"run", "x", "--", "true"}).code, 0);
  result = simba({"show", "--json", "x"});
  EXPECT_EQ(result.code, exit_code::kFree);
  const Json object = Json::parse(result.out);
  EXPECT_EQ(object["state"], "free");
  EXPECT_TRUE(object["owner"].is_null());
  EXPECT_GT(object["token"], 0);
}

TEST_F(ListingTest, ShowsAnEvictedOwner) {
  const auto holder = hold("x", "first");
  holder->signal(SIGSTOP);
  evict("x");
  const Result result = simba({"show", "x"});
  EXPECT_EQ(result.code, exit_code::kOk);
  EXPECT_THAT(result.out, HasSubstr("x is evicted\n  lease left"));
}

TEST_F(ListingTest, PrintsItsVersion) {
  EXPECT_THAT(simba({"version"}).out, MatchesRegex("simba [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(simba({"--version"}).out, simba({"version"}).out);
  EXPECT_TRUE(Json::parse(simba({"version", "--json"}).out).contains("version"));
}

TEST_F(ListingTest, HelpsByExample) {
  for (const Words& ask :
       {Words{"--help"}, Words{"help"}, Words{"help", "help"}, Words{"run", "--help"},
        Words{"help", "run"}, Words{"run", "-h"}, Words{"ls", "--help"}, Words{"show", "--help"}}) {
    const Result result = simba(ask);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("  simba ")) << ask.front();
    EXPECT_THAT(result.err, IsEmpty());
  }
  EXPECT_EQ(simba({}).code, exit_code::kUsage);
}

struct Mistake {
  Words words;
  std::string answer;
};

TEST_F(ListingTest, SaysWhatIsWrongAndWhatToType) {
  const std::vector<Mistake> mistakes{
      {{"rnu", "x", "--", "true"}, "there is no command 'rnu'; did you mean 'run'?"},
      {{"run", "--wiat", "3s", "x", "--", "true"},
       "'run' has no option '--wiat'; did you mean '--wait'?"},
      {{"ls", "--jsno"}, "'ls' has no option '--jsno'; did you mean '--json'?"},
      {{"run", "x", "true", "-l"}, "put -- before the program: simba run x -- true -l"},
      {{"run", "--wait", "3s", "x", "true"},
       "put -- before the program: simba run --wait 3s x -- true"},
      {{"--store", "sqlite:a.db", "ls"}, "put '--store' after the command"},
      {{"--json", "ls"}, "put '--json' after the command, as in: simba ls --json"},
      {{"--jsno", "ls"}, "there is no option '--jsno'"},
      {{"run", "x"}, "which program?"},
      {{"run", "--", "true"}, "which mutex"},
      {{"show"}, "which mutex"},
      {{"show", "a", "b"}, "'b' is one word too many"},
      {{"ls", "a", "b"}, "'b' is one word too many"},
      {{"version", "now"}, "'now' is one word too many"},
      {{"run", "--wait", "3", "x", "--", "true"},
       "--wait is '3' without a unit; write a number and a unit of ms, s, m, h or d"},
      {{"run", "--ttl", "soon", "x", "--", "true"}, "--ttl is 'soon', which is no duration"},
      {{"run", "--ttl", "10ms", "x", "--", "true"}, "must be at least 100 ms"},
      {{"run", "--kill-after", "1h", "x", "--", "true"}, "--kill-after is 1h, but with ttl 10s"},
      {{"run", "--wait", "1s", "--wait", "2s", "x", "--", "true"},
       "--wait is given more than once; see simba run --help"},
      {{"run", "--wait"}, "--wait has no value; see simba run --help"},
      {{"run", "--wait=", "x", "--", "true"}, "--wait has no value"},
      {{"run", "a", "b", "--", "true"}, "'b' is one word too many before --"},
      {{"list"}, "there is no command 'list'; did you mean 'ls'?"},
      {{"unlock", "x"}, "did you mean 'release'?"},
      {{"run", "--timeout", "3s", "x", "--", "true"}, "did you mean '--wait'?"},
      {{"ls", "--timeout", "3s"}, "'ls' has no option '--timeout'; see simba ls --help"},
      {{"run", "a\nb", "--", "true"}, "control"},
      {{"run", "", "--", "true"}, "simba: "},
      {{"ls", "--store", "nosuch:"}, "no store serves 'nosuch:'"},
      {{"ls", "--store", "/tmp/locks.db"}, "scheme"},
      {{"run", "--store", "sqlite3:a.db", "x", "--", "true"}, "did you mean 'sqlite:'?"},
  };
  for (const Mistake& mistake : mistakes) {
    const Result result = simba(mistake.words);
    EXPECT_EQ(result.code, exit_code::kUsage) << mistake.answer;
    EXPECT_THAT(result.err, HasSubstr(mistake.answer));
    EXPECT_THAT(result.err, MatchesRegex("simba: [^\n]*\n"));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(ListingTest, AMutexThatNobodyEverHeldGetsTheNearestThatSomebodyDid) {
  EXPECT_EQ(simba({"run", "nightly", "--", "true"}).code, 0);
  const Result shown = simba({"show", "nigthly"});
  EXPECT_EQ(shown.code, exit_code::kFree);
  EXPECT_EQ(shown.err, "simba: nobody ever held 'nigthly'; did you mean 'nightly'?\n");
  EXPECT_THAT(simba({"release", "nigthly"}).err, HasSubstr("did you mean 'nightly'?"));
  EXPECT_THAT(simba({"show", "nightly"}).err, IsEmpty());
  EXPECT_THAT(simba({"show", "weekly-report"}).err, IsEmpty());
  EXPECT_THAT(simba({"run", "nigthly", "--", "true"}).err, IsEmpty()) << "no person reads this";
  EXPECT_EQ(simba({"ls", "nihgtly"}).err, "simba: no mutex is held under 'nihgtly'\n");
  EXPECT_EQ(simba({"run", "shard-1", "--", "true"}).code, 0);
  EXPECT_THAT(simba({"show", "shard-2"}).err, IsEmpty()) << "numbers are counted, not mistyped";
}

TEST_F(ListingTest, WhoReadsOnlyTheFirstLinesHearsNoComplaint) {
  ASSERT_EQ(simba({"init"}).code, exit_code::kOk);
  const std::string script =
      "(SIMBA watch x; echo $? > code) | (head -n 1; echo gone > head) &\n"
      "until [ -s head ]; do sleep 0.01; done\n"
      "until [ -s code ]; do SIMBA run x -- sleep 0.1; done";
  Process process({"/bin/sh", "-c", std::regex_replace(script, std::regex("SIMBA"), tool())},
                  {.directory = file(""), .environment = {"SIMBA_STORE=" + url()}});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_THAT(process.out(), HasSubstr("x is free"));
  EXPECT_EQ(process.err(), "");
}

TEST_F(ListingTest, SaysThatTheStoreCannotBeUsed) {
  std::ofstream(file("broken.db")) << std::string(4096, 'x');
  std::filesystem::permissions(
      file("broken.db"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const std::string broken = "sqlite:" + file("broken.db").string();
  for (const Words& words :
       {Words{"run", "--store", broken, "x", "--", "touch", "ran"}, Words{"ls", "--store", broken},
        Words{"show", "--store", broken, "x"}}) {
    const Result result = simba(words);
    EXPECT_EQ(result.code, exit_code::kUnavailable);
    EXPECT_THAT(result.err, HasSubstr("broken.db"));
  }
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

TEST_F(ListingTest, NeverRepeatsAPassword) {
  const std::string url = "redis://user:canary@host/?password=canary";
  for (const Words& words :
       {Words{"ls", "--store", "nosuch://user:canary@host/"}, Words{"ls", "--stoer=" + url},
        Words{"--store=" + url, "ls"}, Words{"run", "--store", url, "x", "true"},
        Words{"run", "--store=" + url, "x", "true"}, Words{url}, Words{"show", "x", url},
        Words{"run", "x", url, "--", "true"}}) {
    const Result result = simba(words);
    EXPECT_EQ(result.code, exit_code::kUsage) << result.err;
    EXPECT_THAT(result.out + result.err, Not(HasSubstr("canary")));
    EXPECT_NE(result.err, "");
  }
  EXPECT_THAT(simba({"ls", "--store", url}).err, HasSubstr("set SIMBA_STORE"));
}

}  // namespace
}  // namespace simba::cli
