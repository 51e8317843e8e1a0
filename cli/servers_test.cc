// The second program, for stores that are servers.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

#ifdef SIMBA_SERVERS
// A copy of the tool, with or without its neighbour.
class ServersTest : public ToolTest {
 protected:
  ServersTest() {
    fs::create_directory(file("bin"));
    fs::copy_file(tool(), copy());
  }
  std::string copy() const { return file("bin/simba"); }

  void install_neighbour(const std::string& script) const {
    const fs::path neighbour = (file("bin") / SIMBA_SERVERS).lexically_normal();
    fs::create_directories(neighbour.parent_path());
    std::ofstream(neighbour) << "#!/bin/sh\n" << script << '\n';
    fs::permissions(neighbour, fs::perms::owner_all);
  }

  Result run_copy(Words words, const Words& environment = {}) const {
    words.insert(words.begin(), copy());
    Process process(words, {.directory = file("."), .environment = environment});
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
};

TEST_F(ServersTest, GetTheWholeCommandLine) {
  install_neighbour("for word; do echo \"<$word>\"; done; exit 7");
  const Result result =
      run_copy({"run", "--store", "elsewhere://host/", "--wait", "1s", "a b", "--", "echo", ""});
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.out,
            "<run>\n<--store>\n<elsewhere://host/>\n<--wait>\n<1s>\n<a b>\n<-->\n<echo>\n<>\n");
}

TEST_F(ServersTest, GetAStoreFromTheEnvironment) {
  install_neighbour("echo $SIMBA_STORE $*");
  EXPECT_EQ(run_copy({"ls", "--all"}, {"SIMBA_STORE=elsewhere://host/"}).out,
            "elsewhere://host/ ls --all\n");
}

TEST_F(ServersTest, DriversCountInNoSharedMemory) {
  unsetenv("MONGOC_DISABLE_SHM");  // NOLINT(concurrency-mt-unsafe): no threads yet
  install_neighbour("echo $MONGOC_DISABLE_SHM");
  EXPECT_EQ(run_copy({"ls"}, {"SIMBA_STORE=elsewhere://host/"}).out, "set-by-simba\n");
  EXPECT_EQ(run_copy({"ls"}, {"SIMBA_STORE=elsewhere://host/", "MONGOC_DISABLE_SHM=1"}).out, "1\n");
}

TEST_F(ServersTest, ProgramsDoNotGetWhatWasSetForDrivers) {
  const auto seen_by_program = [&](const std::string& value) {
    return simba({"run", "x", "--", "sh", "-c", "echo $MONGOC_DISABLE_SHM"},
                 {.environment = {"MONGOC_DISABLE_SHM=" + value}})
        .out;
  };
  EXPECT_EQ(seen_by_program("set-by-simba"), "\n");
  EXPECT_EQ(seen_by_program("1"), "1\n");
}

TEST_F(ServersTest, AreNotAskedForAFile) {
  install_neighbour("exit 7");
  EXPECT_EQ(run_copy({"run", "--store", url(), "x", "--", "true"}).code, 0);
  EXPECT_EQ(run_copy({"ls", "--store", "memory:"}).code, 0);
}

TEST_F(ServersTest, WithoutTheProgramThePackageIsNamed) {
  for (const Words& command :
       {Words{"ls", "--store", "redis://host/"}, Words{"torture", "--store", "redis://host/"}}) {
    const Result result = run_copy(command);
    EXPECT_EQ(result.code, exit_code::kUsage) << command.front();
    EXPECT_THAT(result.err, HasSubstr("install the package simba-servers")) << command.front();
  }
  EXPECT_THAT(run_copy({"ls", "--store", "sqlit:x"}).err, HasSubstr("did you mean 'sqlite:'?"));
  EXPECT_THAT(run_copy({"ls", "--store", "locks.db"}).err, HasSubstr("has no scheme"));
}
#endif

}  // namespace
}  // namespace simba::cli
