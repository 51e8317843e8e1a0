// `simba doctor` and `simba bench` on a file.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class DoctorTest : public ToolTest {
 protected:
  void SetUp() override { ASSERT_EQ(simba({"init"}).code, exit_code::kOk); }
  static std::vector<Json> objects(const std::string& text) {
    std::vector<Json> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
    return all;
  }
};

TEST_F(DoctorTest, AGoodStoreIsOkInEveryLine) {
  const Result result = in_a_calm_moment([&] { return simba({"doctor", "--ttl", "60s"}); });
  EXPECT_EQ(result.code, exit_code::kOk) << result.out << result.err;
  for (const char* check : {"lease", "server", "file", "rights", "room", "answers", "wake-ups"}) {
    EXPECT_THAT(result.out, ContainsRegex(std::string("(^|\n)ok +") + check + " +[^\n]+\n"));
  }
  EXPECT_THAT(result.out, Not(HasSubstr("clock"))) << "a file has none of its own";
}

TEST_F(DoctorTest, LeavesNothingBehind) {
  EXPECT_THAT(simba({"doctor"}).out, HasSubstr("may contend"));
  EXPECT_EQ(simba({"ls", "--all"}).err, "simba: no mutex is held\n");
}

// There, in docs/tool.md, any figure would do: the version of SQLite is another one elsewhere.
TEST_F(DoctorTest, ThePageShowsTheLeaseThatIsTheDefault) {
  const std::string out = simba({"doctor"}).out;
  const std::string lease = out.substr(0, out.find('\n') + 1);
  EXPECT_THAT(lease, StartsWith("ok       lease "));
  EXPECT_THAT(read_file(SIMBA_SOURCE "/docs/tool.md"), HasSubstr('\n' + lease));
}

TEST_F(DoctorTest, WhatIsMissingFailsAndIsNotMade) {
  const std::string other = file("other.db").string();
  const Result result = simba({"doctor", "--store", "sqlite:" + other});
  EXPECT_EQ(result.code, exit_code::kUnfit);
  EXPECT_THAT(result.out, ContainsRegex("failed +file +[^\n]*run simba init"));
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(DoctorTest, ALeaseThatCannotWorkFails) {
  const Result result = simba({"doctor", "--ttl", "10ms"});
  EXPECT_EQ(result.code, exit_code::kUnfit);
  EXPECT_THAT(result.out, StartsWith("failed   lease"));
  EXPECT_THAT(result.out, HasSubstr(" --ttl: with ttl 10 ms,"));
  EXPECT_THAT(result.out, HasSubstr("at least 100 ms"));
}

TEST_F(DoctorTest, IsSaidAsJsonToo) {
  const Result result = simba({"doctor", "--json", "--store", "sqlite:" + file("no.db").string()});
  EXPECT_EQ(result.code, exit_code::kUnfit);
  const std::vector<Json> all = objects(result.out);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front()["verdict"], "ok");
  EXPECT_EQ(all.back()["check"], "file");
  EXPECT_EQ(all.back()["verdict"], "failed");
}

TEST_F(DoctorTest, BenchMeasuresLocksAndHandOvers) {
  const Result result = simba({"bench", "--json", "--for", "1s"});
  EXPECT_EQ(result.code, exit_code::kOk) << result.err;
  const std::vector<Json> all = objects(result.out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["measure"], "lock_unlock");
  EXPECT_EQ(all[1]["measure"], "hand_over");
  for (const Json& each : all) {
    EXPECT_GT(each["count"], 0);
    EXPECT_GT(each["p50_us"], 0);
    EXPECT_GE(each["p99_us"], each["p50_us"]);
    EXPECT_GE(each["max_us"], each["p99_us"]);
  }
  EXPECT_EQ(simba({"show", "simba-bench"}).code, exit_code::kFree);
  EXPECT_THAT(simba({"bench", "--for", "1s"}).out,
              ContainsRegex("^lock and unlock +[0-9]+ times: p50 [0-9.]+ ms, p99 "));
}

TEST_F(DoctorTest, BenchLeavesAloneWhatSomebodyHolds) {
  const auto holder = start_script({"x"}, "echo $$ > pid; exec sleep 100");
  ASSERT_GT(pid_in("pid"), 0);
  const Result result = simba({"bench", "x"});
  EXPECT_EQ(result.code, exit_code::kNotAcquired);
  EXPECT_THAT(result.err, HasSubstr("'x' is held by "));
  EXPECT_EQ(simba({"bench", "--for", "0s"}).code, exit_code::kUsage);
}

}  // namespace
}  // namespace simba::cli
