// Completion as it is installed, loaded by the shells it is for.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "cli/shell_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CompletionTest : public ToolTest {
 protected:
  CompletionTest() {
    // fish loads nothing for a command that is not there.
    std::filesystem::create_symlink(tool(), file("simba"));
    std::ofstream(file("lone-program")) << "#!/bin/sh\n";
    std::filesystem::permissions(file("lone-program"), std::filesystem::perms{0755});
  }
  static bool is_there(const std::string& program) { return access(program.c_str(), X_OK) == 0; }
  std::string path() const { return "PATH=" + file("").string() + ":/usr/bin:/bin"; }
};

TEST_F(CompletionTest, ZshLoadsItAndCompletes) {
  if (!is_there("/usr/bin/zsh")) GTEST_SKIP() << "zsh is not installed";
  Shell zsh(file(""), url(), {path(), "TERM=dumb", "/usr/bin/zsh", "-f", "-i"});
  zsh.type("fpath=(" SIMBA_SHARE
           "/zsh/vendor-completions $fpath); autoload -Uz compinit; "
           "compinit -u -d ./dump; simba() { print -r -- \"<$*>\"; }; print lo''aded\n");
  ASSERT_TRUE(zsh.shows("loaded\r")) << zsh.recent();
  const auto expect_completed = [&](const std::string& typed, const std::string& full) {
    zsh.type("simba " + typed + "\t\n");
    EXPECT_TRUE(zsh.shows("<" + full + ">")) << zsh.recent();
  };
  expect_completed("sch", "schedule");
  expect_completed("run --kill", "run --kill-after");
  expect_completed("help vers", "help version");
  expect_completed("run x -- lone", "run x -- lone-program");
}

TEST_F(CompletionTest, FishLoadsItAndCompletes) {
  if (!is_there("/usr/bin/fish")) GTEST_SKIP() << "fish is not installed";
  const auto offered = [&](const std::string& typed) {
    Process::Setting setting;
    setting.directory = file("");
    setting.environment = {path(), "HOME=" + file("").string(),
                           "XDG_DATA_DIRS=" SIMBA_SHARE ":/usr/share"};
    Process fish({"/usr/bin/fish", "-c", "complete -C 'simba " + typed + "'"}, setting);
    EXPECT_EQ(fish.wait(), 0) << fish.err();
    EXPECT_EQ(fish.err(), "");
    return "\n" + fish.out();
  };
  EXPECT_EQ(offered("sch"), "\nschedule\n");
  EXPECT_EQ(offered("run --kill"), "\n--kill-after\n");
  EXPECT_EQ(offered("help vers"), "\nversion\n");
  EXPECT_THAT(offered("run x -- lone"), HasSubstr("\nlone-program"));
  EXPECT_THAT(offered("run x -- ls --"), Not(HasSubstr("--kill-after")));
}

}  // namespace
}  // namespace simba::cli
