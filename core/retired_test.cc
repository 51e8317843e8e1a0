#include "core/retired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace simba::core {
namespace {

using namespace std::chrono_literals;

class RetiredTest : public ::testing::Test {
 protected:
  void retire(const std::string& id) { retired.add({"report", id, now + 16s, 1250ms, 625ms}, now); }
  std::vector<std::string> queue() {
    std::vector<std::string> ids;
    for (const Farewell& farewell : retired.due(now)) ids.push_back(farewell.wire_id);
    return ids;
  }
  // They find nobody in line before them.
  std::vector<std::string> due() {
    const std::vector<std::string> ids = queue();
    for (const std::string& id : ids) EXPECT_TRUE(retired.sent(id, now));
    return ids;
  }
  using Ids = std::vector<std::string>;

  LocalTime now{1h};
  RetiredIds retired;
};

TEST_F(RetiredTest, NobodyIsSettled) {
  EXPECT_TRUE(retired.is_settled());
  EXPECT_TRUE(retired.empty());
  EXPECT_EQ(retired.next_timer(), LocalTime::max());
  EXPECT_EQ(due(), Ids{});
}

TEST_F(RetiredTest, AnIdIsReleasedAtOnceAndOnce) {
  retire("a~1");
  EXPECT_LE(retired.next_timer(), now);
  EXPECT_FALSE(retired.is_settled());
  EXPECT_EQ(due(), Ids{"a~1"});
  EXPECT_EQ(due(), Ids{});  // under way
  retired.released("a~1");
  EXPECT_TRUE(retired.is_settled());
  EXPECT_EQ(due(), Ids{});
}

TEST_F(RetiredTest, AfterAnErrorItIsReleasedAgainAfterThePause) {
  retire("a~1");
  due();
  retired.failed("a~1", now);
  EXPECT_TRUE(retired.is_settled()) << "it has been tried: nobody waits longer for it";
  EXPECT_EQ(retired.next_timer(), now + 625ms);
  now += 624ms;
  EXPECT_EQ(due(), Ids{});
  now += 1ms;
  EXPECT_EQ(due(), Ids{"a~1"});
}

TEST_F(RetiredTest, AnObservationThatNamesItMakesItDueAgain) {
  retire("a~1");
  due();
  retired.released("a~1");
  now += 1s;
  EXPECT_TRUE(retired.is_named("a~1", now));
  EXPECT_LE(retired.next_timer(), now);
  EXPECT_EQ(due(), Ids{"a~1"});
}

// The release was performed before the late claim arrived, but its answer comes last.
TEST_F(RetiredTest, OneThatIsNamedWhileItsReleaseIsUnderWayIsReleasedAgain) {
  retire("a~1");
  due();
  EXPECT_TRUE(retired.is_named("a~1", now));
  EXPECT_EQ(due(), Ids{});
  retired.released("a~1");
  EXPECT_EQ(due(), Ids{"a~1"});
}

TEST_F(RetiredTest, AStrangersIdIsNotNamed) {
  retire("a~1");
  EXPECT_FALSE(retired.is_named("b~1", now));
  EXPECT_FALSE(retired.is_named("", now));
}

TEST_F(RetiredTest, ItIsForgottenWhenNoLeaseUnderItCanBeLeft) {
  retire("a~1");
  due();
  retired.released("a~1");
  const LocalTime until = now + 16s;
  while (now < until) {
    ASSERT_LE(retired.next_timer(), until);  // it will be looked at by then
    now = std::max(now, retired.next_timer());
    EXPECT_EQ(due(), Ids{});
  }
  EXPECT_EQ(due(), Ids{});
  EXPECT_TRUE(retired.empty());
  EXPECT_FALSE(retired.is_named("a~1", now));
  EXPECT_EQ(retired.next_timer(), LocalTime::max());
}

TEST_F(RetiredTest, OneThatFailsAndFailsIsGivenUpWhenItsLeaseHasEnded) {
  retire("a~1");
  int attempts = 0;
  for (; !retired.empty() && attempts < 100; now += 625ms) {
    if (due().empty()) continue;
    ++attempts;
    retired.failed("a~1", now);
  }
  EXPECT_TRUE(retired.empty());
  EXPECT_NEAR(attempts, 16'000 / 625, 1);
  EXPECT_TRUE(retired.is_settled());
}

TEST_F(RetiredTest, AReleaseOfWhichNothingIsHeardIsRepeated) {
  retire("a~1");
  due();
  now += 2 * 1250ms + 624ms;
  EXPECT_EQ(due(), Ids{});
  now += 1ms;
  EXPECT_EQ(due(), Ids{"a~1"});
}

// Else an outage would make the line longer and longer.
TEST_F(RetiredTest, OneThatIsStillInLineIsNotPutThereAgain) {
  retire("a~1");
  EXPECT_EQ(queue(), Ids{"a~1"});
  now += 10s;
  EXPECT_EQ(queue(), Ids{});
  EXPECT_TRUE(retired.is_named("a~1", now));
  retire("a~1");
  EXPECT_EQ(queue(), Ids{});
  EXPECT_TRUE(retired.sent("a~1", now));
  now += 2 * 1250ms + 625ms;
  EXPECT_EQ(queue(), Ids{"a~1"}) << "nothing was heard of it";
}

TEST_F(RetiredTest, WhatIsHeardOfAnEarlierReleaseDoesNotPutOneInLineAgain) {
  retire("a~1");
  due();
  now += 4s;
  EXPECT_EQ(queue(), Ids{"a~1"});
  retired.failed("a~1", now);  // the first one, which hung in the driver
  now += 4s;
  EXPECT_EQ(queue(), Ids{});
  retired.released("a~1");
  now += 4s;
  EXPECT_EQ(queue(), Ids{});
  EXPECT_TRUE(retired.sent("a~1", now));
}

TEST_F(RetiredTest, OneThatIsForgottenInLineIsNotSentAnyMore) {
  retire("a~1");
  EXPECT_EQ(queue(), Ids{"a~1"});
  now += 16s;
  EXPECT_EQ(queue(), Ids{});
  EXPECT_TRUE(retired.empty());
  EXPECT_FALSE(retired.sent("a~1", now));
}

TEST_F(RetiredTest, ManyAreReleasedTogether) {
  for (int i = 0; i < 100; ++i) retire("a~" + std::to_string(i));
  EXPECT_EQ(due().size(), 100U);
}

TEST_F(RetiredTest, AnswersAboutStrangersAreIgnored) {
  retired.released("nobody~1");
  retired.failed("nobody~1", now);
  EXPECT_TRUE(retired.empty());
  EXPECT_EQ(retired.next_timer(), LocalTime::max());
}

}  // namespace
}  // namespace simba::core
