// `simba init` on stores that need no server.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::json;

using InitTest = ToolTest;

TEST_F(InitTest, MakesTheFileOnceAndThenSaysThatItWasThere) {
  const std::string name = file("locks.db").string();
  const Result first = simba({"init"});
  EXPECT_EQ(first.code, exit_code::kOk) << first.err;
  EXPECT_THAT(first.out, StartsWith("the file " + name + " is made\n"));
  EXPECT_TRUE(std::filesystem::exists(name));
  const Result second = simba({"init"});
  EXPECT_EQ(second.code, exit_code::kOk);
  EXPECT_EQ(second.out, "the file " + name + " was there already\n");
}

TEST_F(InitTest, PrintChangesNothing) {
  const Result printed = simba({"init", "--print"});
  EXPECT_EQ(printed.code, exit_code::kOk);
  EXPECT_THAT(printed.out, HasSubstr("CREATE TABLE IF NOT EXISTS simba_mutex"));
  EXPECT_THAT(printed.err, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file("locks.db")));
}

// Without what does not change the meaning: spaces, quotes, and whether it may be there already.
std::string bare_sql(std::string text) {
  for (const char* noise : {"IF NOT EXISTS", "[\\s\"'`]"}) {
    text = std::regex_replace(text, std::regex(noise), "");
  }
  return text;
}

TEST_F(InitTest, ThePagesOfTheStoresShowTheStatementsThatItPrints) {
  struct Page {
    const char *name, *url;
    int statements;
  };
  for (const Page& page :
       {Page{"mysql", "mysql://db/simba_db", 4}, Page{"postgres", "postgresql://db/app", 3},
        Page{"sqlite", "sqlite:locks.db", 1}}) {
    const Result printed = simba({"init", "--print", "--store", page.url});
    if (printed.err.find("no store serves") != std::string::npos) continue;
    const std::string text = read_file(SIMBA_SOURCE "/docs/" + std::string(page.name) + ".md");
    const std::regex block("```(sql)\n([^`]*)```"), statement("[^;]+;");
    int found = 0;
    for (std::sregex_iterator each(text.begin(), text.end(), block), end; each != end; ++each) {
      const std::string code = (*each)[2];
      if (code.starts_with("SELECT")) continue;  // for people who look
      for (std::sregex_iterator one(code.begin(), code.end(), statement); one != end; ++one) {
        EXPECT_THAT(bare_sql(printed.out), HasSubstr(bare_sql(one->str()))) << page.name;
        ++found;
      }
    }
    EXPECT_EQ(found, page.statements) << page.name;
  }
}

TEST_F(InitTest, AFileOfAnotherProgramIsRefused) {
  std::ofstream(file("locks.db")) << "not a database, and longer than a header would be: "
                                  << std::string(4096, 'x');
  const Result result = simba({"init"});
  EXPECT_NE(result.code, exit_code::kOk);
  EXPECT_THAT(result.err, HasSubstr("locks.db"));
}

TEST_F(InitTest, AStoreThatNeedsNothingSaysSo) {
  EXPECT_THAT(simba({"init", "--store", "memory:"}).out, HasSubstr("needs nothing to be made"));
  const Result printed = simba({"init", "--print", "--store", "memory:"});
  EXPECT_THAT(printed.out, IsEmpty());
  EXPECT_THAT(printed.err, HasSubstr("needs nothing to be made"));
}

TEST_F(InitTest, TellsAsJsonWhetherItMadeSomething) {
  const Json printed = Json::parse(simba({"init", "--print", "--json"}).out);
  EXPECT_EQ(printed["made"], false);
  EXPECT_THAT(printed["statements"], HasSubstr("CREATE TABLE"));
  EXPECT_EQ(Json::parse(simba({"init", "--json"}).out)["made"], true);
  const Json again = Json::parse(simba({"init", "--json"}).out);
  EXPECT_EQ(again["made"], false);
  EXPECT_EQ(again["statements"], "");
  EXPECT_THAT(again["summary"], HasSubstr("was there already"));
}

}  // namespace
}  // namespace simba::cli
