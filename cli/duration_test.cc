#include "cli/duration.h"

#include <gtest/gtest.h>

#include "cli/usage.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

TEST(DurationTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("--wait", "0"), 0ms);
  EXPECT_EQ(parse_duration("--wait", "0s"), 0ms);
  EXPECT_EQ(parse_duration("--wait", "500ms"), 500ms);
  EXPECT_EQ(parse_duration("--wait", "10s"), 10s);
  EXPECT_EQ(parse_duration("--wait", "1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("--wait", "0.1s"), 100ms);
  EXPECT_EQ(parse_duration("--wait", "2m"), 2min);
  EXPECT_EQ(parse_duration("--wait", "1m30s"), 90s);
  EXPECT_EQ(parse_duration("--wait", "1h"), 1h);
  EXPECT_EQ(parse_duration("--wait", "365d"), 24h * 365);
}

TEST(DurationTest, RefusesTheRest) {
  for (const char* text : {"",
                           " ",
                           "s",
                           "10",
                           "-1s",
                           "+1s",
                           "1 s",
                           "1S",
                           "1sec",
                           "10s ",
                           "1e3s",
                           "nans",
                           "infs",
                           "0x1s",
                           "366d",
                           "0.1ms",
                           "1..5s",
                           "1s2",
                           "9999999999999999999999d",
                           "1µs"}) {
    EXPECT_THROW(parse_duration("--wait", text), UsageError) << text;
  }
}

TEST(DurationTest, NamesTheOptionTheValueAndTheUnits) {
  try {
    parse_duration("--ttl", "10sec");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "--ttl is '10sec', whose unit is unknown; write a number and a unit of ms, s, m, h or "
        "d, as in 500ms, 10s or 2m");
  }
}

TEST(DurationTest, PrintsForPeople) {
  EXPECT_EQ(print_duration(0ms), "0 ms");
  EXPECT_EQ(print_duration(350ms), "350 ms");
  EXPECT_EQ(print_duration(1500ms), "1.5 s");
  EXPECT_EQ(print_duration(1999ms), "1.9 s");
  EXPECT_EQ(print_duration(2050ms), "2 s");
  EXPECT_EQ(print_duration(12900ms), "12 s");
  EXPECT_EQ(print_duration(60s), "1 min");
  EXPECT_EQ(print_duration(185s), "3 min 5 s");
  EXPECT_EQ(print_duration(2h + 5min + 3s), "2 h 5 min");
  EXPECT_EQ(print_duration(2h + 3s), "2 h");
  EXPECT_EQ(print_duration(24h * 3 + 4h), "3 d 4 h");
}

TEST(DurationTest, ABoundIsNeverPrintedShorterThanItIs) {
  EXPECT_EQ(print_bound(0ms), "0 ms");
  EXPECT_EQ(print_bound(350ms), "350 ms");
  EXPECT_EQ(print_bound(1001ms), "2 s");
  EXPECT_EQ(print_bound(9s), "9 s");
  EXPECT_EQ(print_bound(12100ms), "13 s");
  EXPECT_EQ(print_bound(2h + 5min + 3s), "2 h 6 min");
  EXPECT_EQ(print_bound(24h * 3 + 4h + 1min), "3 d 5 h");
}

TEST(DurationTest, SaysWhatIsWrongWithAValue) {
  const auto refusal = [](const char* text) -> std::string {
    try {
      parse_duration("--ttl", text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  const auto begins = [&](const char* text, const std::string& how) {
    return refusal(text).starts_with("--ttl is '" + std::string(text) + "'" + how);
  };
  EXPECT_TRUE(begins("10 s", " with a space in it; write a number and a unit"));
  EXPECT_TRUE(begins("-1s", ", which is below 0; write a number and a unit"));
  EXPECT_EQ(refusal("500d"), "--ttl is '500d'; it can be at most 365d");
  EXPECT_EQ(refusal("0.1ms"), "--ttl is '0.1ms'; it can be at least 1ms, or 0");
}

TEST(UsageTest, SuggestsTheNearest) {
  const std::vector<std::string> known{"run", "ls", "show", "version"};
  EXPECT_EQ(nearest("rnu", known), "run");
  EXPECT_EQ(nearest("shwo", known), "show");
  EXPECT_EQ(nearest("versoin", known), "version");
  EXPECT_EQ(nearest("sl", known), "ls");
  EXPECT_EQ(nearest("frobnicate", known), "");
}

TEST(DurationTest, IsWrittenAsItMayBeTypedInTheLargestWholeUnit) {
  for (const char* text : {"0ms", "1ms", "1500ms", "2s", "90s", "3m", "1h", "25h", "7d"}) {
    EXPECT_EQ(typed_duration(parse_duration("x", text)), text);
  }
  EXPECT_EQ(typed_duration(std::chrono::microseconds{2'000'900}), "2s");
}

}  // namespace
}  // namespace simba::cli
