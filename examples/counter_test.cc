#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "testing/servers/directory.h"
#include "testing/servers/process.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

// The article's example on the article's server.
namespace simba {
namespace {

TEST(CounterTest, ManyThreadsOfManyProcessesLoseNoUpdateOnMongodb) {
  try {
    const servers::SharedServer server("mongodb");
    const servers::Directory directory;
    const std::string out = directory.path() / "out";
    servers::Command command;
    command.words = {SIMBA_COUNTER, server.address() + "&collection=counter_" +
                                        std::to_string(std::random_device{}())};
    // Else the driver may say something first: that it finds a file of a killed process.
    command.environment = {"MONGOC_DISABLE_SHM=1"};
    command.directory = directory.path();
    command.log = out;
    servers::Process counter(command);
    ASSERT_TRUE(counter.wait(std::chrono::seconds(200)));
    std::stringstream said;
    said << std::ifstream(out).rdbuf();
    EXPECT_EQ(said.str(), "4 processes of 4 threads counted to 400 of 400\n");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
}

}  // namespace
}  // namespace simba
