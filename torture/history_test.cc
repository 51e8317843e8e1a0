#include "torture/history.h"
#include "torture/moments.h"

#include <gtest/gtest.h>

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using Kind = Record::Kind;

Record look(int before, int after, Token token) {
  return {at(before), at(after), token, token * 100, 0, Kind::kLook, true, true};
}
Record owner_only(int before, int after, Token token) {
  Record record = look(before, after, token);
  record.is_in_ttl = false;
  return record;
}
Record write(Kind kind, int before, int after, Token token, Token found = 0) {
  return {at(before), at(after), token, token * 100, found, kind, false, false};
}

std::vector<std::string> promises(const std::vector<Lane>& lanes) {
  std::vector<std::string> broken;
  for (const Violation& violation : check({"m", lanes})) broken.push_back(violation.promise);
  return broken;
}

using Broken = std::vector<std::string>;

TEST(HistoryTest, OneOwnerAfterTheOtherBreaksNothing) {
  EXPECT_EQ(promises({{0, {look(0, 1, 7), look(5, 6, 7)}}, {1, {look(7, 8, 9), look(9, 10, 9)}}}),
            Broken{});
}

TEST(HistoryTest, ASmallerTokenAfterALargerOneBreaksP1) {
  const History history{"m", {{0, {look(0, 1, 7), look(9, 10, 7)}}, {1, {look(7, 8, 9)}}}};
  const auto found = check(history);
  ASSERT_EQ(found.size(), 2U) << "and P1b";
  EXPECT_EQ(found[0].promise, "P1");
  EXPECT_EQ(found[0].what,
            "m: client 0 with token 7 is in its ttl 1000 us after client 1 with token 9");
  EXPECT_EQ(found[0].at, at(9));
}

TEST(HistoryTest, LooksThatOverlapProveNothing) {
  EXPECT_EQ(promises({{0, {look(0, 9, 7)}}, {1, {look(7, 8, 9)}}}), Broken{});
  EXPECT_EQ(promises({{0, {look(8, 9, 7)}}, {1, {look(7, 8, 9)}}}), Broken{}) << "the same instant";
}

TEST(HistoryTest, TheLargestTokenNeedNotBeTheOneThatCameFirst) {
  EXPECT_EQ(promises({{0, {look(20, 21, 7)}}, {1, {look(10, 11, 8)}}, {2, {look(30, 31, 9)}}}),
            (Broken{"P1", "P1b"}));
}

TEST(HistoryTest, AnOwnerOutOfItsTtlBreaksOnlyP1b) {
  EXPECT_EQ(promises({{0, {owner_only(9, 10, 7)}}, {1, {look(7, 8, 9)}}}), Broken{"P1b"});
}

TEST(HistoryTest, TwoTermsWithOneTokenBreakP2) {
  Record other = look(9, 10, 7);
  other.term = 1;
  EXPECT_EQ(promises({{0, {look(0, 1, 7)}}, {1, {other}}}), Broken{"P2"});
}

TEST(HistoryTest, ASupersededWriteThatIsAppliedBreaksP3) {
  const std::vector<Record> newer{look(5, 6, 9), write(Kind::kFenced, 7, 8, 9)};
  EXPECT_EQ(promises({{0, {look(0, 1, 7), write(Kind::kFenced, 9, 10, 7)}}, {1, newer}}),
            Broken{"P3"});
  EXPECT_EQ(promises({{0, {look(0, 1, 7), write(Kind::kRefused, 9, 10, 7)}}, {1, newer}}),
            Broken{});
  EXPECT_EQ(promises({{0, {look(0, 1, 7), write(Kind::kFenced, 3, 10, 7)}}, {1, newer}}), Broken{})
      << "it may have been applied before";
}

TEST(HistoryTest, P3GoesByWhoOwnedFirstAndNotByTheTokens) {
  const std::vector<Record> newer{look(5, 6, 9), write(Kind::kFenced, 7, 8, 9)};
  Record forged = write(Kind::kFenced, 9, 10, 7);
  forged.token = 10;  // so that the register takes it
  EXPECT_EQ(promises({{0, {look(0, 1, 7), forged}}, {1, newer}}), Broken{"P3"});
}

TEST(HistoryTest, ATermThatOwnsAgainBreaksR4) {
  Record no = owner_only(3, 4, 7);
  no.is_owner = false;
  EXPECT_EQ(promises({{0, {look(0, 1, 7), no, owner_only(5, 6, 7)}}}), Broken{"R4"});
  EXPECT_EQ(promises({{0, {look(0, 1, 7), no, look(5, 6, 8)}}}), Broken{}) << "another term";
  EXPECT_EQ(promises({{0, {look(0, 1, 7), owner_only(3, 4, 7), look(5, 6, 7)}}}), Broken{})
      << "renewed after its ttl";
}

TEST(HistoryTest, CallbacksThatDoNotTakeTurnsBreakP4) {
  const auto called = [](Kind kind, int before, int after, Token token, std::uint64_t process = 1) {
    Record record = write(kind, before, after, token);
    record.process = process;
    return record;
  };
  const Record first = called(Kind::kAcquired, 0, 5, 7), second = called(Kind::kAcquired, 9, 12, 8);
  const Record end = called(Kind::kReleased, 5, 6, 7);
  EXPECT_EQ(promises({{0, {first, end, second, called(Kind::kReleased, 13, 14, 8)}}}), Broken{});
  EXPECT_EQ(promises({{0, {first, second}}}), Broken{"P4"}) << "no end in between";
  EXPECT_EQ(promises({{0, {first, end, called(Kind::kReleased, 7, 8, 7)}}}), Broken{"P4"});
  EXPECT_EQ(promises({{0, {end}}}), Broken{"P4"}) << "no begin";
  EXPECT_EQ(promises({{0, {first, called(Kind::kReleased, 4, 6, 7)}}}), Broken{"P4"})
      << "both at once";
  EXPECT_EQ(promises({{0, {first, called(Kind::kReleased, 5, 6, 8)}}}), Broken{"P4"})
      << "of another term";
  EXPECT_EQ(promises({{0, {first, called(Kind::kAcquired, 9, 12, 8, 2)}}}), Broken{})
      << "the first process was killed";
  EXPECT_EQ(promises({{0, {first}}, {1, {second}}}), Broken{}) << "another contender";
}

TEST(HistoryTest, AnUnfencedWriteOverANewerOneIsLost) {
  const History history{"m",
                        {{0,
                          {write(Kind::kUnfenced, 0, 1, 7, 0), write(Kind::kUnfenced, 9, 10, 7, 9),
                           write(Kind::kRefused, 9, 10, 7, 9)}},
                         {1, {write(Kind::kUnfenced, 7, 8, 9, 7)}}}};
  EXPECT_TRUE(check(history).empty()) << "it was never promised";
  const Writes counted = writes(history);
  EXPECT_EQ(counted.unfenced, 3U);
  EXPECT_EQ(counted.lost, 1U);
  EXPECT_EQ(counted.refused, 1U);
}

TEST(HistoryTest, ATermLastsFromItsFirstYesToItsLast) {
  const auto found = spans(
      {"m", {{0, {look(0, 1, 7), look(5, 6, 7), owner_only(8, 9, 7)}}, {1, {look(7, 8, 9)}}}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].begin, at(0));
  EXPECT_EQ(found[0].end, at(6));
  EXPECT_EQ(found[1].client, 1);
}

TEST(HistoryTest, ATakeoverIsTheFirstOwnerSeenSince) {
  const History history{"m", {{0, {look(0, 1, 7)}}, {1, {look(12, 13, 9), look(20, 21, 9)}}}};
  EXPECT_EQ(takeover(history, at(10)), 3ms);
  EXPECT_EQ(takeover(history, at(0)), 1ms);
  EXPECT_EQ(takeover(history, at(30)), std::nullopt);
}

}  // namespace
}  // namespace simba::torture
