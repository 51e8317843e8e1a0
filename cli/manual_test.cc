// Manual pages and completion: made from the help and from the parser.
#include <gmock/gmock.h>
#include <unistd.h>

#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ManualTest : public ToolTest {
 protected:
  // What bash offers after these words.
  std::string offered(const std::string& words) const {
    Process::Setting setting;
    setting.directory = file(".");
    Process bash(
        {"/bin/bash", "-c",
         "source <(" + tool() + " completion bash); compopt() { :; }; COMP_WORDS=(" + words +
             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=${COMP_WORDS[*]}; "
             "_simba simba \"${COMP_WORDS[COMP_CWORD]}\"; echo \"${COMPREPLY[@]}\""},
        setting);
    EXPECT_EQ(bash.wait(), 0) << bash.err();
    return bash.out();
  }
};

TEST_F(ManualTest, EachCommandHasAPage) {
  const std::string page = simba({"help", "--man", "run"}).out;
  EXPECT_THAT(page, StartsWith(".TH SIMBA\\-RUN 1"));
  EXPECT_THAT(page,
              HasSubstr("simba\\-run \\- waits for the mutex, runs the program while owning it, "
                        "releases it\n"));
  EXPECT_THAT(page, HasSubstr(".SH OPTIONS\n"));
  EXPECT_THAT(page, HasSubstr("\\-\\-kill\\-after DURATION"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT CODES\n"));
  EXPECT_THAT(simba({"help", "--man"}).out, HasSubstr("simba \\- run programs under a mutex"));
  EXPECT_EQ(simba({"help", "--man", "nothing"}).code, exit_code::kUsage);
}

TEST_F(ManualTest, APageIsOfTheDayOfTheLastChange) {
  const std::string changes = read_file(SIMBA_SOURCE "/CHANGELOG.md");
  const std::regex entry("\n- (20[0-9]{2}-[0-9]{2}-[0-9]{2}): ");
  std::string newest;
  for (std::sregex_iterator each(changes.begin(), changes.end(), entry), end; each != end; ++each) {
    newest = std::max(newest, (*each)[1].str());
  }
  EXPECT_THAT(simba({"help", "--man", "run"}).out,
              StartsWith(".TH SIMBA\\-RUN 1 \"" + newest + "\" \"simba "));
}

TEST_F(ManualTest, EachCommandHasAPageThatIsInstalled) {
  const std::string listed = offered("simba ''");  // "help", and what help is for
  std::istringstream words(listed);
  int pages = 0;
  for (std::string command; words >> command;) {
    if (command == "help") continue;
    EXPECT_EQ(read_file(SIMBA_SHARE "/man/man1/simba-" + command + ".1"),
              simba({"help", "--man", command}).out);
    ++pages;
  }
  EXPECT_GE(pages, 14) << listed;
  EXPECT_EQ(read_file(SIMBA_SHARE "/man/man1/simba.1"), simba({"help", "--man"}).out);
}

TEST_F(ManualTest, ManShowsEveryPageWithoutAWarning) {
  if (access("/usr/bin/man", X_OK) != 0) GTEST_SKIP() << "man is not installed";
  for (const auto& page : std::filesystem::directory_iterator(SIMBA_SHARE "/man/man1")) {
    Process::Setting setting;
    setting.directory = file(".");
    setting.environment = {"MANWIDTH=80", "LC_ALL=C.UTF-8"};
    Process man({"/usr/bin/man", "--warnings", "-l", page.path()}, setting);
    EXPECT_EQ(man.wait(), 0) << page.path();
    EXPECT_EQ(man.err(), "") << page.path();
    EXPECT_THAT(man.out(), HasSubstr("SYNOPSIS")) << page.path();
  }
}

// The parser knows what may be typed, and completion asks it; people read the help and the page.
TEST_F(ManualTest, TheHelpHasExactlyTheOptionsOfTheParser) {
  const std::string script = simba({"completion", "bash"}).out;
  const std::regex row(R"(\n +\*:\*:([a-z]+)\) words='--help ?([^']*)')"),
      option(R"(\n  (-[a-z], )?(--[a-z-]+))");
  int commands = 0;
  for (std::sregex_iterator each(script.begin(), script.end(), row), end; each != end; ++each) {
    const std::string command = (*each)[1];
    std::istringstream words((*each)[2]);
    const std::set<std::string> parsed{std::istream_iterator<std::string>(words), {}};
    const std::string help = simba({command, "--help"}).out;
    std::set<std::string> told;
    for (std::sregex_iterator line(help.begin(), help.end(), option); line != end; ++line) {
      told.insert((*line)[2]);
    }
    EXPECT_EQ(told, parsed) << "simba " << command << " --help";
    const std::string page = simba({"help", "--man", command}).out;
    for (const std::string& each_option : parsed) {
      EXPECT_THAT(page, HasSubstr(std::regex_replace(each_option, std::regex("-"), "\\-")));
    }
    ++commands;
  }
  EXPECT_GE(commands, 14) << script;
}

TEST_F(ManualTest, TheHelpOfEachCommandHasItsExitCodes) {
  std::istringstream words(offered("simba ''"));
  for (std::string command; words >> command;) {
    if (command == "help") continue;
    const std::string help = simba({command, "--help"}).out;
    const std::string codes = help.substr(std::min(help.find("\nExit codes:\n"), help.size()));
    EXPECT_THAT(codes, HasSubstr("64 usage")) << command;
    if (command == "run") continue;
    EXPECT_THAT(codes, Not(HasSubstr(" 70 "))) << command << ": it waits for the next turn";
  }
}

TEST_F(ManualTest, WhatATerminalGetsIsSaid) {
  const std::string help = simba({"--help"}).out;
  EXPECT_THAT(help, HasSubstr("NO_COLOR"));
  EXPECT_THAT(help, HasSubstr("TERM=dumb"));
}

TEST_F(ManualTest, BashCompletesCommandsOptionsAndPrograms) {
  EXPECT_EQ(offered("simba ru"), "run\n");
  EXPECT_EQ(offered("simba run --kill"), "--kill-after\n");
  EXPECT_EQ(offered("simba release --n"), "--now\n");
  EXPECT_THAT(offered("simba run x -- tru"), HasSubstr("true"));
}

TEST_F(ManualTest, AShellItDoesNotKnowIsSaid) {
  const Result result = simba({"completion", "tcsh"});
  EXPECT_EQ(result.code, exit_code::kUsage);
  EXPECT_THAT(result.err, HasSubstr("bash, zsh and fish"));
}

}  // namespace
}  // namespace simba::cli
