// No room: for what is printed, and for the store.
#include <gmock/gmock.h>

#include <fstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

class FullDiskTest : public ToolTest {
 protected:
  Result shell(const std::string& script, const Words& wrapper = {}) const {
    Words command = wrapper;
    command.insert(command.end(), {"/bin/sh", "-c", script});
    Process::Setting setting;
    setting.directory = file(".");
    setting.environment = {"SIMBA_STORE=" + url()};
    Process process(command, setting);
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
  // A directory `full`, on which processes may mount what they like in mounts of their own.
  bool can_mount() const {
    std::filesystem::create_directory(file("full"));
    return shell("mount -t tmpfs none full", own_mounts).code == 0;
  }

  const Words own_mounts{"/usr/bin/unshare", "--mount"};
  const std::string store = "sqlite:" + file("full/locks.db").string();
};

TEST_F(FullDiskTest, WhatCannotBePrintedIsNoSuccess) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  for (const char* words : {"ls", "ls --json", "show x", "watch x", "init --print", "doctor",
                            "config", "version", "help", "completion bash", "release x"}) {
    const Result result = shell(tool() + ' ' + words + " > /dev/full");
    EXPECT_EQ(result.code, exit_code::kUnavailable) << words;
    EXPECT_EQ(result.err, "simba: cannot write to standard output: No space left on device\n");
  }
}

// Room for the file and no more, in a mount of the processes' own.
TEST_F(FullDiskTest, AStoreWithoutRoomIsSaidAndNothingRuns) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a file system";
  const Result result = shell(
      "mount -t tmpfs -o size=512k,mode=700 none full && head -c 10000000 /dev/zero > full/rest; " +
          tool() + " run --wait 0 --store " + store + " x -- touch ran",
      own_mounts);
  EXPECT_EQ(result.code, exit_code::kUnavailable) << result.err;
  EXPECT_THAT(result.err, HasSubstr("disk is full"));
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

// Not ended by SIGXFSZ without a word.
TEST_F(FullDiskTest, AStoreWhoseFileMayNotGrowIsSaidToo) {
  const Result result = shell("(ulimit -f 0; " + tool() +
                              " run --wait 0 x -- touch ran; echo it exited with $?) 2>&1 | cat");
  EXPECT_THAT(result.out, HasSubstr("File too large"));
  EXPECT_THAT(result.out, HasSubstr("it exited with 69"));
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
}

TEST_F(FullDiskTest, NoCommandIsEndedByAFileThatMayNotGrow) {
  for (const std::string words : {"init", "ls", "show x", "release x", "bench"}) {
    const Result result =
        shell("(ulimit -f 0; " + tool() + ' ' + words + "; echo it exited with $?) 2>&1 | cat");
    EXPECT_THAT(result.out, HasSubstr("File too large")) << words;
    EXPECT_THAT(result.out, HasSubstr("it exited with 69")) << words;
  }
}

// A renewal that fails for want of room is tried again: room made within the lease is soon enough.
TEST_F(FullDiskTest, ADiskThatIsFullForAWhileCostsNobodyTheMutex) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a file system";
  std::ofstream(file("program.sh"))
      << "head -c 10000000 /dev/zero > full/rest\n"
      << "until grep -q 'tried again' said; do sleep 0.05; done\n"
      << "rm full/rest\n"
      << "until " << tool() << " show --json x | grep -Eq '\"lease_left_ms\":(59[5-9]|60)'\n"
      << "do sleep 0.05; done; exit 9\n";
  const Result result = shell("mount -t tmpfs -o size=512k,mode=700 none full && exec " + tool() +
                                  " run --ttl 1s "
                                  "--transition 59s --store " +
                                  store + " x -- sh program.sh 2> said",
                              own_mounts);
  EXPECT_EQ(result.code, 9) << read_file(file("said"));
  EXPECT_THAT(read_file(file("said")), HasSubstr("disk is full"));
}

}  // namespace
}  // namespace simba::cli
