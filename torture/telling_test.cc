#include "torture/telling.h"

#include <gtest/gtest.h>

#include "torture/moments.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using Kind = LateTelling::Kind;

Record over(int ms) { return {at(ms), at(ms), 7, 700, 0, Record::Kind::kLook, false, false}; }
Record told(int ms, nanoseconds waited = 0ms) {
  Record record = over(ms);
  record.is_told = true;
  record.waited = waited;
  return record;
}
// At 10 ms, and again and again.
std::vector<Record> looks(int count, int every = 5) {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) records.push_back(over(10 + i * every));
  return records;
}
std::vector<Record> looks_until(const Record& last, int count, int every = 5) {
  std::vector<Record> records = looks(count, every);
  records.push_back(last);
  return records;
}

std::vector<Kind> judged(const std::vector<Record>& records,
                         const std::vector<Stall>& stalls = {}) {
  std::vector<Kind> kinds;
  for (const LateTelling& each : late_tellings({"m", {{0, records}}}, stalls))
    kinds.push_back(each.kind);
  return kinds;
}
using Kinds = std::vector<Kind>;

TEST(TellingTest, WhoIsToldWithin50MsOfRunningTimeIsToldInTime) {
  EXPECT_EQ(judged(looks_until(told(65), 11)), Kinds{});
  EXPECT_EQ(judged(looks_until(told(70), 12)), Kinds{Kind::kLate});
  EXPECT_EQ(judged({told(10)}), Kinds{});
}

TEST(TellingTest, HowLateIsSaidOnceByTheLastLookThatFoundNobodyTold) {
  std::vector<Record> records = looks_until(told(160), 30);
  records.push_back(told(165));
  const auto found = late_tellings({"m", {{3, records}}}, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].running, 145ms);
  EXPECT_EQ(found[0].violation.promise, "P4");
  EXPECT_TRUE(found[0].violation.is_of_time);
  EXPECT_EQ(found[0].violation.since, at(10));
  EXPECT_EQ(found[0].violation.at, at(155));
  EXPECT_EQ(found[0].violation.what,
            "m: client 3 with token 7 was told that it owns no more after 145 ms of running time "
            "(145 ms by the clock, 0 ms of it without a processor)");
}

TEST(TellingTest, WhoWasStoppedOrLooksSeldomDidNotRunInBetween) {
  EXPECT_EQ(judged(looks_until(told(12'000), 11, 1'000)), Kinds{});
  EXPECT_EQ(judged(looks_until(told(13'000), 12, 1'000)), Kinds{Kind::kLate});
}

TEST(TellingTest, TimeWithoutAProcessorIsNoRunningTime) {
  EXPECT_EQ(judged(looks_until(told(160, 94ms), 30)), Kinds{Kind::kLate}) << "56 ms are left";
  EXPECT_EQ(judged(looks_until(told(160, 100ms), 30)), Kinds{});
  EXPECT_EQ(judged(looks_until(told(160, 10s), 30)), Kinds{});
}

TEST(TellingTest, AStallExcusesItsOwnLengthAndIsNotCountedTwice) {
  const std::vector<Record> late = looks_until(told(160), 30);
  EXPECT_EQ(judged(late, {{at(110), 90ms}}), Kinds{Kind::kLate}) << "55 ms are left";
  EXPECT_EQ(judged(late, {{at(110), 100ms}}), Kinds{Kind::kStalled});
  EXPECT_EQ(judged(late, {{at(110), 60ms}, {at(100), 50ms}}), Kinds{Kind::kLate}) << "they overlap";
  EXPECT_EQ(judged(late, {{at(9), 5s}}), Kinds{Kind::kLate}) << "it was before";
  EXPECT_EQ(judged(late, {{at(5'200), 5s}}), Kinds{Kind::kLate}) << "it was after";
  EXPECT_EQ(judged(looks_until(told(160, 50ms), 30), {{at(160), 60ms}}), Kinds{Kind::kLate})
      << "a thread had no processor because the machine stood still";
}

TEST(TellingTest, WhoIsNeverToldIsNotExcused) {
  const std::vector<Record> never = looks(kMostOverLooks);
  EXPECT_EQ(judged(never), Kinds{Kind::kNever});
  EXPECT_EQ(judged(never, {{at(9'000), 9s}}), Kinds{Kind::kNever});
  EXPECT_FALSE(late_tellings({"m", {{0, never}}}, {}).at(0).violation.is_of_time);
}

TEST(TellingTest, AClientThatWasKilledBeforeItWasToldSaysNothing) {
  EXPECT_EQ(judged(looks(kMostOverLooks - 1)), Kinds{});
}

TEST(TellingTest, EachTermIsJudgedByItself) {
  std::vector<Record> records;
  for (int i = 0; i < 12; ++i) {
    records.push_back(over(10 + 5 * i));
    records.back().term += static_cast<std::uint64_t>(i % 2);
  }
  records.push_back(told(70));
  EXPECT_EQ(judged(records), Kinds{}) << "two, of which each was looked at half as often";
}

}  // namespace
}  // namespace simba::torture
