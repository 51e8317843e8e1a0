// `simba torture`, on a file: clients are killed and stopped, and the verdict says so.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

class TortureTest : public ToolTest {};

TEST_F(TortureTest, AStoreThatKeepsItsPromisesHolds) {
  const Result result =
      simba({"torture", "--store", url(), "--for", "1s", "--ttl", "2s", "--transition", "1s",
             "--seed", "7", "--json", "--picture", file("torture.svg").string()});
  ASSERT_EQ(result.code, exit_code::kOk) << result.out << result.err;
  const auto verdict = nlohmann::json::parse(result.out);
  EXPECT_EQ(verdict["holds"], true);
  EXPECT_EQ(verdict["seed"], 7);
  EXPECT_GT(verdict["terms"], 1);
  EXPECT_GT(verdict["unfenced_lost"], 0) << "a harness that is blind shows nothing";
  EXPECT_GT(verdict["faults"]["stop before a write"], 0);
  const std::string picture = read_file(file("torture.svg"));
  EXPECT_THAT(picture, HasSubstr("<svg "));
  EXPECT_THAT(picture, HasSubstr("client 3"));
}

TEST_F(TortureTest, WhatCannotBeTorturedIsSaidBeforehand) {
  const auto refusal = [this](Words words) {
    words.insert(words.begin(), "torture");
    const Result result = simba(words);
    EXPECT_EQ(result.code, exit_code::kUsage);
    return result.err;
  };
  EXPECT_THAT(refusal({"--store", "memory:"}), HasSubstr("memory: lives in one process"));
  EXPECT_THAT(refusal({"--store", url(), "--for", "100ms"}), HasSubstr("from 1s to 1d"));
  EXPECT_THAT(refusal({"--store", url(), "--clients", "1"}), HasSubstr("from 2 to 64"));
  EXPECT_THAT(refusal({"--store", url(), "--ttl", "10ms"}), HasSubstr("make ttl or transition"));
  EXPECT_THAT(refusal({"--store", url(), "--picture", file("no/where.svg").string()}),
              HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace simba::cli
