// The table of exit codes in docs/tool.md has those of exit_codes.h, and no others.
#include "cli/exit_codes.h"

#include <gmock/gmock.h>

#include <map>
#include <regex>

#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

std::string source(const std::string& name) {
  return read_file(std::string(SIMBA_SOURCE) + '/' + name);
}

// By number, what stands beside it.
std::map<int, std::string> table() {
  const std::string page = source("docs/tool.md");
  const std::size_t begin = page.find("### Exit codes");
  const std::string part = page.substr(begin, page.find("\n### ", begin + 1) - begin);
  const std::regex row(R"(\n\| ([0-9, ]+)( \+ n)? \| ([^\n]*) \|)"), number("[0-9]+");
  std::map<int, std::string> rows;
  for (std::sregex_iterator each(part.begin(), part.end(), row), end; each != end; ++each) {
    const std::string codes = (*each)[1];
    for (std::sregex_iterator code(codes.begin(), codes.end(), number); code != end; ++code) {
      EXPECT_TRUE(rows.emplace(std::stoi(code->str()), (*each)[3]).second)
          << code->str() << " stands there twice";
    }
  }
  return rows;
}

// By number, the commands that a code is of: a comment begins with them.
std::map<int, std::vector<std::string>> header() {
  const std::string text = source("cli/exit_codes.h");
  const std::regex constant(R"(constexpr int k\w+ =\s+([0-9]+);(?: +// ([a-z, ]+):)?)");
  const std::regex word("[a-z]+");
  std::map<int, std::vector<std::string>> codes;
  for (std::sregex_iterator each(text.begin(), text.end(), constant), end; each != end; ++each) {
    std::vector<std::string>& commands = codes[std::stoi((*each)[1])];
    const std::string names = (*each)[2];
    for (std::sregex_iterator name(names.begin(), names.end(), word); name != end; ++name) {
      commands.push_back(name->str());
    }
  }
  return codes;
}

TEST(ExitCodesTest, TheTableHasThoseOfTheHeader) {
  const auto rows = table();
  const auto codes = header();
  EXPECT_GE(codes.size(), 10U);
  for (const auto& [code, commands] : codes) {
    ASSERT_TRUE(rows.contains(code)) << code << " is not in the table of docs/tool.md";
    // Of a program's own end there is one command; else the row has to say whose it is.
    if (!rows.at(code).starts_with("without a program: ")) continue;
    for (const std::string& command : commands) {
      EXPECT_THAT(rows.at(code), HasSubstr('`' + command + '`')) << code;
    }
  }
  for (const auto& [code, text] : rows) {
    EXPECT_TRUE(codes.contains(code)) << code << " is not in cli/exit_codes.h: " << text;
  }
}

}  // namespace
}  // namespace simba::cli
