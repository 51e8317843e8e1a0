#include "core/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace simba::core {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

class BatcherTest : public ::testing::Test {
 protected:
  void add(CallKind kind, const std::string& mutex, nanoseconds deadline = 1250ms) {
    Job job;
    job.kind = kind;
    job.mutex = mutex;
    job.wire_id = "me~" + std::to_string(++last);
    job.deadline = now + deadline;
    job.due = now;
    batcher.add(std::move(job));
  }
  void add_many(CallKind kind, int count) {
    for (int i = 0; i < count; ++i) add(kind, "m" + std::to_string(100'000 + i));
  }
  Batch must() {
    std::optional<Batch> batch = batcher.next(now);
    EXPECT_TRUE(batch) << "nothing goes out";
    return batch ? std::move(*batch) : Batch{};
  }
  void expect_none() { EXPECT_FALSE(batcher.next(now)); }
  static Names names(const Batch& batch) {
    Names out;
    for (const Job& job : batch.jobs) out.push_back(job.mutex);
    return out;
  }

  LocalTime now{1h};
  Batcher batcher;
  int last = 0;
};

TEST_F(BatcherTest, NothingDueIsNothingToDo) {
  expect_none();
  EXPECT_EQ(batcher.next_timer(), LocalTime::max());
}

TEST_F(BatcherTest, AClaimThatFindsNoCallUnderWayGoesAtOnce) {
  add(CallKind::kTake, "report");
  EXPECT_EQ(names(must()), Names{"report"});
  expect_none();
}

TEST_F(BatcherTest, WhatIsDueTogetherGoesTogetherSortedByName) {
  for (const char* mutex : {"c", "a", "b"}) add(CallKind::kRenew, mutex);
  EXPECT_EQ(names(must()), (Names{"a", "b", "c"}));
  expect_none();
}

TEST_F(BatcherTest, ABatchHoldsEachMutexOnce) {
  add(CallKind::kTake, "a");
  add(CallKind::kTake, "a");
  add(CallKind::kTake, "b");
  const Batch first = must();
  EXPECT_EQ(names(first), (Names{"a", "b"}));
  EXPECT_EQ(first.jobs.front().wire_id, "me~1");  // the older one
  batcher.succeeded(first);
  const Batch second = must();
  EXPECT_EQ(names(second), Names{"a"});
  EXPECT_EQ(second.jobs.front().wire_id, "me~2");
}

TEST_F(BatcherTest, WhoWaitsBehindAnotherOfItsMutexCanBeWithdrawn) {
  for (int i = 0; i < 4; ++i) add(CallKind::kTake, "a");
  add(CallKind::kTake, "b");
  const std::vector<Job> out = batcher.withdraw("a", "me~3");
  ASSERT_EQ(out.size(), 2);
  EXPECT_EQ(out[0].wire_id, "me~2");
  EXPECT_EQ(out[1].wire_id, "me~4");
  EXPECT_TRUE(batcher.withdraw("b", "").empty());
  EXPECT_TRUE(batcher.withdraw("c", "").empty());
  const Batch first = must();
  EXPECT_EQ(names(first), (Names{"a", "b"}));
  batcher.succeeded(first);
  const Batch second = must();
  ASSERT_EQ(names(second), Names{"a"});
  EXPECT_EQ(second.jobs.front().wire_id, "me~3");
  batcher.succeeded(second);
  expect_none();
}

TEST_F(BatcherTest, AQuestionIsNotWithdrawn) {
  add(CallKind::kTake, "a");
  add(CallKind::kObserve, "a");
  EXPECT_TRUE(batcher.withdraw("a", "").empty());
  const Batch take = must();
  EXPECT_EQ(take.kind, CallKind::kTake);
  batcher.succeeded(take);
  EXPECT_EQ(must().kind, CallKind::kObserve);
}

TEST_F(BatcherTest, WhoIsPassedByKeepsItsPlaceBeforeThoseWhoCameLater) {
  add(CallKind::kTake, "a");
  add(CallKind::kObserve, "b");
  add(CallKind::kTake, "c");
  add(CallKind::kObserve, "d");
  const Batch takes = must();
  EXPECT_EQ(names(takes), (Names{"a", "c"}));
  add(CallKind::kTake, "e");
  batcher.succeeded(takes);
  EXPECT_EQ(names(must()), (Names{"b", "d"}));
}

TEST_F(BatcherTest, TheDeadlineIsThatOfTheEarliestMember) {
  add(CallKind::kRenew, "a", 900ms);
  add(CallKind::kRenew, "b", 300ms);
  add(CallKind::kRenew, "c", 600ms);
  EXPECT_EQ(must().deadline, now + 300ms);
}

// Its deadline is that of a whole batch.
TEST_F(BatcherTest, WhatIsGivenBackHasItsWholeTimeHoweverLongItStoodInLine) {
  add(CallKind::kRelease, "a");
  add(CallKind::kRelease, "a");
  const Batch first = must();
  now += 10s;
  add(CallKind::kRelease, "b", 1s);
  batcher.failed(first);
  const Batch second = must();
  EXPECT_EQ(names(second), (Names{"a", "b"}));
  EXPECT_EQ(second.deadline, now + 1s);
  EXPECT_EQ(second.jobs.front().deadline, now + 1250ms);
}

TEST_F(BatcherTest, RenewalsDoNotQueueBehindAcquisitions) {
  add(CallKind::kTake, "a");
  EXPECT_EQ(must().lane, Lane::kAsk);
  add(CallKind::kTake, "b");
  add(CallKind::kRenew, "c");
  const Batch keep = must();
  EXPECT_EQ(keep.lane, Lane::kKeep);
  EXPECT_EQ(names(keep), Names{"c"});
  expect_none();
}

TEST_F(BatcherTest, EachKindHasItsLane) {
  EXPECT_EQ(lane_of(CallKind::kRenew), Lane::kKeep);
  EXPECT_EQ(lane_of(CallKind::kRelease), Lane::kKeep);
  EXPECT_EQ(lane_of(CallKind::kTake), Lane::kAsk);
  EXPECT_EQ(lane_of(CallKind::kObserve), Lane::kAsk);
}

TEST_F(BatcherTest, ABatchIsOfOneKind) {
  add(CallKind::kRenew, "a");
  add(CallKind::kRelease, "b");
  add(CallKind::kRenew, "c");
  const Batch renewals = must();
  EXPECT_EQ(renewals.kind, CallKind::kRenew);
  EXPECT_EQ(names(renewals), (Names{"a", "c"}));
  batcher.succeeded(renewals);
  const Batch releases = must();
  EXPECT_EQ(releases.kind, CallKind::kRelease);
  EXPECT_EQ(names(releases), Names{"b"});
}

TEST_F(BatcherTest, WhatFallsDueDuringACallGoesOutWhenItIsAnswered) {
  add(CallKind::kRenew, "a");
  const Batch first = must();
  add(CallKind::kRenew, "b");
  add(CallKind::kRenew, "c");
  expect_none();
  batcher.succeeded(first);
  EXPECT_EQ(names(must()), (Names{"b", "c"}));
}

TEST_F(BatcherTest, AClaimWaitsTenMillisecondsForTheCallUnderWay) {
  add(CallKind::kRenew, "a");
  must();
  add(CallKind::kRenew, "b");
  EXPECT_EQ(batcher.next_timer(), now + 10ms);
  now += 10ms - 1ns;
  expect_none();
  now += 1ns;
  EXPECT_EQ(names(must()), Names{"b"});
}

TEST_F(BatcherTest, ALaneHasFourCallsAtMost) {
  for (int i = 0; i < 4; ++i) {
    add(CallKind::kTake, "m" + std::to_string(i));
    now += 10ms;
    must();
  }
  add(CallKind::kTake, "m4");
  now += 1s;
  expect_none();
  EXPECT_GT(batcher.next_timer(), now);
  add(CallKind::kRenew, "m5");
  EXPECT_EQ(names(must()), Names{"m5"});  // the other lane is free
}

TEST_F(BatcherTest, ACallThatOutlivesItsDeadlineIsNotWaitedFor) {
  add(CallKind::kTake, "hangs");
  const LocalTime overdue = must().deadline + Batcher::kOverdue;
  now = overdue;
  add(CallKind::kTake, "next");
  EXPECT_EQ(names(must()), Names{"next"});  // at once, as if nothing were under way
}

TEST_F(BatcherTest, CallsThatHangDoNotStopALane) {
  for (int i = 0; i < 4; ++i) {
    add(CallKind::kRenew, "hangs" + std::to_string(i));
    now += 10ms;
    must();
  }
  add(CallKind::kRenew, "next");
  expect_none();
  ASSERT_NE(batcher.next_timer(), LocalTime::max());
  now = batcher.next_timer();
  EXPECT_EQ(names(must()), Names{"next"});
}

TEST_F(BatcherTest, HangingCallsAreSixteenAtMost) {
  for (int i = 0; i < 16; ++i) {
    add(CallKind::kRenew, "hangs" + std::to_string(i));
    now += 2s;
    must();
  }
  add(CallKind::kRenew, "next");
  now += 1h;
  expect_none();
}

TEST_F(BatcherTest, AnAnswerMakesRoomInAFullLane) {
  std::vector<Batch> under_way;
  for (int i = 0; i < 4; ++i) {
    add(CallKind::kTake, "m" + std::to_string(i));
    now += 10ms;
    under_way.push_back(must());
  }
  add(CallKind::kTake, "m4");
  now += 10ms;
  expect_none();
  batcher.failed(under_way.back());
  EXPECT_EQ(names(must()), Names{"m4"});
}

TEST_F(BatcherTest, ABatchHoldsAThousandAtMost) {
  add_many(CallKind::kRenew, 2500);
  const Batch first = must();
  EXPECT_EQ(first.jobs.size(), 1000U);
  batcher.succeeded(first);
  const Batch second = must();
  EXPECT_EQ(second.jobs.size(), 1000U);
  batcher.succeeded(second);
  EXPECT_EQ(must().jobs.size(), 500U);
}

TEST_F(BatcherTest, ABlockedMutexIsAskedAloneUntilItAnswers) {
  batcher.blocked("b");
  for (const char* mutex : {"a", "b", "c"}) add(CallKind::kRenew, mutex);
  const Batch others = must();
  EXPECT_EQ(names(others), (Names{"a", "c"}));
  batcher.succeeded(others);
  const Batch alone = must();
  EXPECT_EQ(names(alone), Names{"b"});
  batcher.succeeded(alone);
  batcher.unblocked("b");
  for (const char* mutex : {"a", "b", "c"}) add(CallKind::kRenew, mutex);
  EXPECT_EQ(names(must()), (Names{"a", "b", "c"}));
}

TEST_F(BatcherTest, ABlockedMutexAtTheHeadTakesNobodyWithIt) {
  batcher.blocked("a");
  for (const char* mutex : {"a", "b", "c"}) add(CallKind::kRenew, mutex);
  const Batch alone = must();
  EXPECT_EQ(names(alone), Names{"a"});
  batcher.succeeded(alone);
  EXPECT_EQ(names(must()), (Names{"b", "c"}));
}

TEST_F(BatcherTest, ABlockedMutexDoesNotKeepItsNeighboursWaitingLongerThanOthers) {
  batcher.blocked("a");
  for (const char* mutex : {"a", "b"}) add(CallKind::kRenew, mutex);
  EXPECT_EQ(names(must()), Names{"a"});
  now += 10ms;
  EXPECT_EQ(names(must()), Names{"b"});
}

TEST_F(BatcherTest, AfterAnErrorBatchesAreHalfAsLargeUntilTheySucceed) {
  add_many(CallKind::kRenew, 400);
  const Batch all = must();
  EXPECT_EQ(all.jobs.size(), 400U);
  batcher.failed(all);
  add_many(CallKind::kRenew, 1000);
  const Batch half = must();
  EXPECT_EQ(half.jobs.size(), 200U);
  batcher.succeeded(half);
  const Batch larger = must();
  EXPECT_EQ(larger.jobs.size(), 400U);
  batcher.succeeded(larger);
  EXPECT_EQ(must().jobs.size(), 400U);  // the rest
}

TEST_F(BatcherTest, ErrorsHalveDownToOneAndNoFurther) {
  for (int i = 0; i < 20; ++i) {
    add_many(CallKind::kRenew, 8);
    while (const std::optional<Batch> batch = batcher.next(now)) {
      EXPECT_GE(batch->jobs.size(), 1U);
      batcher.failed(*batch);
    }
  }
  add_many(CallKind::kRenew, 8);
  EXPECT_EQ(must().jobs.size(), 1U);
}

TEST_F(BatcherTest, AnErrorOfOneLaneDoesNotShrinkTheOther) {
  add_many(CallKind::kTake, 100);
  batcher.failed(must());
  add_many(CallKind::kRenew, 100);
  EXPECT_EQ(must().jobs.size(), 100U);
}

TEST_F(BatcherTest, AnErrorOfASingleClaimShrinksNothing) {
  add(CallKind::kRenew, "a");
  batcher.failed(must());
  add_many(CallKind::kRenew, 100);
  EXPECT_EQ(must().jobs.size(), 100U);
}

TEST_F(BatcherTest, ALargerBatchOfBeforeTheErrorsDoesNotMakeThemLargerAgain) {
  add_many(CallKind::kRenew, 1000);
  const Batch large = must();
  now += 10ms;
  add_many(CallKind::kRenew, 8);
  now += 10ms;
  batcher.failed(must());  // eight: from now on four
  batcher.failed(large);
  add_many(CallKind::kRenew, 1000);
  EXPECT_LE(must().jobs.size(), 4U);
}

TEST_F(BatcherTest, ASplitBatchGoesOutAgainAsTwoHalvesAtOnce) {
  for (const char* mutex : {"a", "b", "c", "d", "e"}) add(CallKind::kRenew, mutex);
  batcher.split(must());
  EXPECT_EQ(names(must()), (Names{"a", "b"}));
  EXPECT_EQ(names(must()), (Names{"c", "d", "e"}));
  expect_none();
}

TEST_F(BatcherTest, EachHalfHasTheDeadlineOfItsOwnEarliest) {
  add(CallKind::kRenew, "a", 300ms);
  add(CallKind::kRenew, "b", 900ms);
  batcher.split(must());
  EXPECT_EQ(must().deadline, now + 300ms);
  EXPECT_EQ(must().deadline, now + 900ms);
}

TEST_F(BatcherTest, SplittingFindsTheOneBadClaimInFewCalls) {
  add_many(CallKind::kRenew, 1000);
  int calls = 0;
  std::size_t good = 0, bad = 0;
  while (std::optional<Batch> batch = batcher.next(now)) {
    ASSERT_LT(++calls, 100);
    const Names in = names(*batch);
    if (std::find(in.begin(), in.end(), "m100777") == in.end()) {
      good += in.size();
      batcher.succeeded(*batch);
    } else if (in.size() == 1) {
      ++bad;
      batcher.failed(*batch);
    } else {
      batcher.split(std::move(*batch));
    }
  }
  EXPECT_EQ(good, 999U);
  EXPECT_EQ(bad, 1U);
  EXPECT_LE(calls, 22);
}

TEST_F(BatcherTest, SplittingCountsEachCallOnce) {
  add_many(CallKind::kRenew, 4);
  batcher.split(must());
  const Batch first = must();
  const Batch second = must();
  batcher.succeeded(first);
  add(CallKind::kRenew, "late");
  expect_none();  // the second half is still under way
  batcher.succeeded(second);
  EXPECT_EQ(names(must()), Names{"late"});
}

TEST_F(BatcherTest, ARenewalOvertakesWhatOthersGaveUp) {
  for (int i = 0; i < 100; ++i) add(CallKind::kRelease, "report");
  add(CallKind::kRenew, "report");
  EXPECT_EQ(must().kind, CallKind::kRelease);
  now += Batcher::kPatience;
  EXPECT_EQ(must().kind, CallKind::kRenew);
}

}  // namespace
}  // namespace simba::core
