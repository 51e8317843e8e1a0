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
    EXPECT_EQ(simba({"run", "app/nightly", "--", "true"}).code, 0);
    EXPECT_EQ(simba({"run", "app/$(touch harm)", "--", "true"}).code, 0);
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
  expect_completed("show app/ni", "show app/nightly");
  expect_completed("lead --restart al", "lead --restart always");
  expect_completed("ls --config lone", "ls --config lone-program");
}

TEST_F(CompletionTest, BashLoadsItAndCompletes) {
  const auto offered = [&](const Words& typed) {
    std::string script =
        "export " + path() + "; source <(simba completion bash); COMP_WORDS=(simba";
    for (const std::string& word : typed) script += " '" + word + "'";
    script +=
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=${COMP_WORDS[*]}; compopt() { echo "
        "files; }; "
        "_simba simba \"${COMP_WORDS[COMP_CWORD]}\"; "
        "printf '%s\\n' \"${COMPREPLY[@]}\"";
    Process bash({"/bin/bash", "-c", script},
                 {.directory = file(""), .environment = {"SIMBA_STORE=" + url()}});
    EXPECT_EQ(bash.wait(), 0) << bash.err();
    EXPECT_EQ(bash.err(), "");
    return bash.out();
  };
  EXPECT_EQ(offered({"sch"}), "schedule\n");
  EXPECT_EQ(offered({"run", "--kill"}), "--kill-after\n");
  EXPECT_EQ(offered({"help", "vers"}), "version\n");
  EXPECT_EQ(offered({"run", "--wait", "3s", "app/ni"}), "app/nightly\n");
  EXPECT_EQ(offered({"show", "app/$"}), "app/\\$\\(touch\\ harm\\)\n");
  EXPECT_EQ(offered({"lead", "--restart", "n"}), "never\n");
  EXPECT_EQ(offered({"completion", "z"}), "zsh\n");
  EXPECT_THAT(offered({"ls", "--config", ""}), HasSubstr("files\n"));
  EXPECT_THAT(offered({"run", "x", "--", "lone"}), HasSubstr("files\nlone-program\n"));
  EXPECT_FALSE(std::filesystem::exists(file("harm"))) << "the name of a mutex was run";
}

// Its line editor takes more for the end of a word than blanks.
TEST_F(CompletionTest, BashCompletesNamesInWhichItBreaksWords) {
  for (const char* name : {"app:nightly", "app:other", "a=b:c@d:e", "app:with blank"}) {
    ASSERT_EQ(simba({"run", name, "--", "true"}).code, 0);
  }
  Shell bash(file(""), url(), {path(), "TERM=dumb", "/bin/bash", "--norc", "--noprofile", "-i"});
  bash.type("source <(simba completion bash); simba() { echo \"<$*>\"; }; echo lo''aded\n");
  ASSERT_TRUE(bash.shows("loaded\r")) << bash.recent();
  const auto expect_completed = [&](const std::string& typed, const std::string& full) {
    bash.type("simba " + typed + "\t\n");
    EXPECT_TRUE(bash.shows("<" + full + ">")) << bash.recent();
  };
  expect_completed("show app:ni", "show app:nightly");
  expect_completed("show app:", "show app:");  // which of them?
  expect_completed("show a=", "show a=b:c@d:e");
  expect_completed("show a=b:c@", "show a=b:c@d:e");
  expect_completed("show a=b:c@d", "show a=b:c@d:e");
  expect_completed("show app:w", "show app:with blank");
  expect_completed("show app:nightly --js", "show app:nightly --json");
  expect_completed("lead app:nightly --restart al", "lead app:nightly --restart always");
  expect_completed("run app:nightly -- lone", "run app:nightly -- lone-program");
  expect_completed("show app/ni", "show app/nightly");
}

TEST_F(CompletionTest, FishLoadsItAndCompletes) {
  if (!is_there("/usr/bin/fish")) GTEST_SKIP() << "fish is not installed";
  const auto offered = [&](const std::string& typed) {
    Process::Setting setting;
    setting.directory = file("");
    setting.environment = {path(), "HOME=" + file("").string(), "SIMBA_STORE=" + url(),
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
  EXPECT_EQ(offered("show app/ni"), "\napp/nightly\n");
  EXPECT_EQ(offered("lead --restart n"), "\nnever\n");
  EXPECT_EQ(offered("completion z"), "\nzsh\n");
}

}  // namespace
}  // namespace simba::cli
