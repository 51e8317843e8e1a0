// A store from outside the tree in the tool: its URLs, and its properties in a file with settings.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OutsideTest : public ToolTest {
 protected:
  void configure(const std::string& text) const {
    std::ofstream(file("simba.yaml")) << text;
    chmod(file("simba.yaml").c_str(), 0644);
  }
  Result outside(const Words& arguments, const Words& environment = {}) const {
    Words command{SIMBA_OUTSIDE_TOOL};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Process::Setting setting;
    setting.directory = file(".");
    setting.environment = environment;
    Process process(command, setting);
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
};

TEST_F(OutsideTest, ServesEveryCommand) {
  EXPECT_EQ(outside({"run", "--store", "outside:", "x", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_EQ(outside({"show", "--store", "outside:", "x"}).code, exit_code::kFree);
  EXPECT_THAT(outside({"init", "--store", "outside:"}).out, HasSubstr("a map needs nothing"));
  EXPECT_EQ(outside({"bench", "--for", "1s", "--store", "outside:"}).code, exit_code::kOk);
}

TEST_F(OutsideTest, ItsPropertiesStandInItsSectionAndReachIt) {
  configure("simba:\n  store: outside:orders\n  outside:\n    zone: eu\n    ttl: 5s\n");
  EXPECT_THAT(outside({"doctor"}).out, HasSubstr("a map of this process, in eu\n"));
  const std::string settings = outside({"config"}).out;
  EXPECT_THAT(settings, HasSubstr("outside:orders?zone=eu"));
  EXPECT_THAT(settings, ::testing::ContainsRegex("ttl +5s +simba.yaml:5"));
  EXPECT_THAT(settings, ::testing::ContainsRegex("zone +eu +simba.yaml:4"));
  EXPECT_THAT(outside({"run", "--store", "outside:", "x", "--", "env"}).out,
              HasSubstr("SIMBA_STORE=outside:\n"))
      << "what the file says is not passed on";
}

// What is ours, and what is the program's.
TEST_F(OutsideTest, ASecretOfItsStoreIsKeptFromTheProgram) {
  const Words environment{"OUTSIDE_PASSWORD=canary", "PGPASSWORD=of-the-program"};
  const std::string script =  // the last of them does not end by itself
      "env > seen; [ $0 != schedule ] || kill $(cut -d ' ' -f 4 /proc/$PPID/stat)";
  const std::vector<Words> all{{"run"}, {"lead"}, {"schedule", "--every", "1h"}};
  for (const Words& each : all) {
    Words words = each;
    words.insert(words.end(), {"--store", "outside:", "x", "--", "sh", "-c", script, each[0]});
    outside(words, environment);
    EXPECT_THAT(read_file(file("seen")), Not(HasSubstr("canary"))) << each[0];
    EXPECT_THAT(read_file(file("seen")), HasSubstr("PGPASSWORD=of-the-program")) << each[0];
    std::filesystem::remove(file("seen"));
  }
}

// Whatever it is called.
TEST_F(OutsideTest, APropertyThatIsSecretIsShownToNobody) {
  configure("simba:\n  store: outside:orders\n  outside:\n    apikey: canary\n");
  const Result settings = outside({"config"});
  EXPECT_THAT(settings.out, HasSubstr("outside:orders?apikey=***"));
  EXPECT_THAT(settings.out, ::testing::ContainsRegex("apikey +\\*\\*\\* +simba.yaml:4"));
  EXPECT_THAT(settings.out + settings.err, Not(HasSubstr("canary")));
  configure("");
  const std::string url = "outside:orders?zone=eu&apikey=canary";
  const Result typed = outside({"ls", "--store", url});
  EXPECT_EQ(typed.code, exit_code::kUsage);
  EXPECT_THAT(typed.err, HasSubstr("--store: the URL has a password"));
  EXPECT_THAT(outside({"run", "x", "--", "env"}, {"SIMBA_STORE=" + url}).out,
              HasSubstr("SIMBA_STORE=withheld:\n"));
}

TEST_F(OutsideTest, TheUrlHasTheLastWord) {
  configure("simba:\n  outside:\n    zone: eu\n");
  EXPECT_THAT(outside({"doctor", "--store", "outside:?zone=us"}).out,
              HasSubstr("a map of this process, in us\n"));
  EXPECT_THAT(outside({"doctor", "--store", "outside:?x=1&zone=us&y=2"}).out,
              HasSubstr("a map of this process, in us\n"));
}

TEST_F(OutsideTest, WhatItsSectionCannotHoldIsRefusedWithTheLine) {
  configure("simba:\n  store: outside:orders\n  outside:\n    zone: mars\n");
  EXPECT_THAT(outside({"config"}).err,
              HasSubstr("simba.yaml:4: 'outside.zone' is 'mars'; it can be eu or us"));
  configure("simba:\n  store: outside:orders\n  outside:\n    zoen: eu\n");
  const Result result = outside({"config"});
  EXPECT_EQ(result.code, exit_code::kUsage);
  EXPECT_THAT(result.err,
              HasSubstr("simba.yaml:4: 'zoen' is not known; did you mean 'zone'? It "
                        "can be enabled, ttl, transition, initial-delay, zone, apikey"));
  configure("simba:\n  store: outside:orders\n  outside:\n    enabled: false\n");
  EXPECT_THAT(outside({"config"}).err, HasSubstr("simba.outside.enabled is false"));
}

TEST_F(OutsideTest, WithoutTheCallNobodyKnowsIt) {
  configure("simba:\n  outside:\n    zone: eu\n");
  EXPECT_THAT(simba({"config"}).err, HasSubstr("simba.yaml:2: 'outside' is not known"));
}

}  // namespace
}  // namespace simba::cli
