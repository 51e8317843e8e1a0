// What the command makes of where it runs: a user without settings, a shifted clock.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class SurroundingsTest : public ToolTest {
 protected:
  Result shell(const std::string& script, const Words& environment = {}) const {
    Process process({"/bin/sh", "-c", script},
                    {.directory = file("."), .environment = environment});
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
};

// The default of root is a file of the whole machine, so root becomes somebody else for this.
TEST_F(SurroundingsTest, WithoutAnySettingTheStoreIsAPrivateFileOfTheUsers) {
  const std::string state = file("state").string();
  std::filesystem::copy_file(tool(), file("simba"));  // where everybody can reach it
  std::string become;
  if (geteuid() == 0) {
    become = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    ASSERT_EQ(chown(file(".").c_str(), 65534, 65534), 0);
  }
  const Result result = shell("umask 0; exec " + become +
                                  "./simba run x -- sh -c 'stat -c \"%a %n\" $XDG_STATE_HOME/simba "
                                  "$XDG_STATE_HOME/simba/locks.db*'",
                              {"XDG_STATE_HOME=" + state, "XDG_CONFIG_HOME=/nonexistent"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              StartsWith("700 " + state + "/simba\n600 " + state + "/simba/locks.db\n"));
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) EXPECT_THAT(line, MatchesRegex("[67]00 .*"));
}

TEST_F(SurroundingsTest, AShiftedTimeNamespaceIsRefused) {
  const std::string within = "unshare --time --fork --boottime ";
  if (shell(within + "1000 true").code != 0) {
    GTEST_SKIP() << "this user cannot make a time namespace, or the kernel has none";
  }
  const std::string run = ' ' + tool() + " run --wait 0 --store " + url() + " x -- touch ran";
  const Result shifted = shell(within + "1000" + run);
  EXPECT_EQ(shifted.code, exit_code::kUsage) << shifted.err;
  EXPECT_THAT(shifted.err, HasSubstr("shifts CLOCK_BOOTTIME by 1000 s"));
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
  EXPECT_EQ(shell(within + '0' + run).code, 0) << "it shifts nothing";
  EXPECT_TRUE(std::filesystem::exists(file("ran")));
}

}  // namespace
}  // namespace simba::cli
