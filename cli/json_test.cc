// --json is one object per line, and docs/tool.md has the fields of each command.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using Json = nlohmann::json;
using Fields = std::set<std::string>;

class JsonTest : public ToolTest {
 protected:
  // What the page says of a command.
  static std::string section(const std::string& command) {
    const std::string page = read_file(std::string(SIMBA_SOURCE) + "/docs/tool.md");
    const std::size_t from = page.find("\n## " + command + "\n");
    EXPECT_NE(from, page.npos) << "docs/tool.md has no section " << command;
    return from == page.npos ? "" : page.substr(from, page.find("\n## ", from + 1) - from);
  }
  // The fields of the example in it.
  static Fields documented(const std::string& command) {
    const std::string text = section(command);
    static const std::regex example("```json\n([^\n]+)\n```");
    std::smatch found;
    if (!std::regex_search(text, found, example)) {
      ADD_FAILURE() << "docs/tool.md shows no JSON for " << command;
      return {};
    }
    return fields(found[1]);
  }
  static Fields fields(const std::string& line) {
    Fields names;
    const Json object = Json::parse(line);
    EXPECT_TRUE(object.is_object()) << line;
    for (const auto& [name, value] : object.items()) names.insert(name);
    return names;
  }

  static void expect_documented(const std::string& command, const std::string& printed) {
    std::istringstream lines(printed);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_EQ(fields(line), documented(command)) << command << ": " << line;
    }
    EXPECT_GT(count, 0) << command;
  }
  void expect_documented(const Words& words) const {
    expect_documented(words[0], simba(words).out);
  }
  std::unique_ptr<Process> hold() const {
    auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
    EXPECT_GT(pid_in("pid"), 0);
    return holder;
  }
};

TEST_F(JsonTest, OfLsShowAndReleaseIsDocumented) {
  const auto holder = hold();
  expect_documented({"ls", "--json"});
  expect_documented({"show", "--json", "x"});
  expect_documented({"show", "--json", "free"});
  expect_documented({"release", "--json", "x"});
}

TEST_F(JsonTest, OfWatchIsDocumented) {
  const auto holder = hold();
  const auto watching = start({"watch", "--json", "x", "y"});
  ASSERT_TRUE(eventually([&] {
    const std::string out = watching->out();
    return std::count(out.begin(), out.end(), '\n') >= 2;
  }));
  watching->signal(SIGINT);
  watching->wait();
  expect_documented("watch", watching->out());
}

TEST_F(JsonTest, OfTheOthersIsDocumented) {
  expect_documented({"init", "--json"});
  expect_documented({"doctor", "--json"});
  expect_documented({"bench", "--json", "--for", "1s"});
  expect_documented({"config", "--json"});
  expect_documented({"version", "--json"});
}

TEST_F(JsonTest, OfTortureIsDocumented) { expect_documented({"torture", "--json", "--for", "1s"}); }

// A command with --json that is not looked at here.
TEST_F(JsonTest, EveryCommandThatHasItIsLookedAt) {
  const Fields known{"ls",     "show",  "release", "watch",  "init",
                     "doctor", "bench", "torture", "config", "version"};
  std::istringstream words(simba({"completion", "fish"}).out);
  static const std::regex option("__fish_seen_subcommand_from ([a-z]+)' -l json$");
  Fields all;
  for (std::string line; std::getline(words, line);) {
    std::smatch found;
    if (std::regex_search(line, found, option)) all.insert(found[1]);
  }
  EXPECT_EQ(all, known);
}

}  // namespace
}  // namespace simba::cli
