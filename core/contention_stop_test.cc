#include "core/contention_fixture.h"

namespace simba::core {
namespace {

// --- stop in every phase ---

TEST_F(ContentionTest, AStopOfAnIdleOneIsNothing) {
  const Effects effects = stop();
  EXPECT_FALSE(effects.over || effects.ask || effects.ended);
}

TEST_F(ContentionTest, AStopWhileWaitingIsOverAtOnce) {
  wait_for_other();
  const Effects effects = stop();
  EXPECT_TRUE(effects.over);
  EXPECT_FALSE(effects.ask);
  EXPECT_TRUE(effects.retired.empty());
  EXPECT_EQ(machine->phase(), Phase::kIdle);
}

TEST_F(ContentionTest, AStopDuringTheInitialDelayIsOverAtOnce) {
  ContendOptions options = calm();
  options.initial_delay = 3s;
  configure(options);
  start();
  EXPECT_TRUE(stop().over);
}

TEST_F(ContentionTest, AStopWhereWaitersQueueLeavesTheQueue) {
  configure(calm(), Queue::kYes);
  wait_for_other();
  const std::string id = machine->wire_id();
  const Effects effects = stop();
  EXPECT_FALSE(effects.over);
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kRelease);
  EXPECT_EQ(effects.ask->wire_id, id);
  EXPECT_TRUE(answer(nobodys()).over);
}

TEST_F(ContentionTest, Original04AGrantThatArrivesAfterStopIsGivenBack) {
  start();
  const std::string id = machine->wire_id();
  EXPECT_FALSE(stop().over);
  EXPECT_EQ(machine->phase(), Phase::kStopping);
  const Effects effects = answer(mine());
  EXPECT_FALSE(effects.began || effects.change);
  EXPECT_FALSE(machine->term());
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kRelease);
  EXPECT_EQ(effects.ask->wire_id, id);
  EXPECT_TRUE(answer(nobodys()).over);
}

TEST_F(ContentionTest, AStopDuringACallIsOverWhenTheAnswerNamesAnother) {
  start();
  stop();
  const Effects effects = answer(owned_by("other~1"));
  EXPECT_TRUE(effects.over);
  EXPECT_FALSE(effects.ask);
}

TEST_F(ContentionTest, AStopDuringACallThatFailsReleasesWhatItMayHaveLeft) {
  start();
  stop();
  const Effects effects = fail(Errc::kTimeout);
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kRelease);
}

// The work may have its grace, the store one call deadline: then it is over, whatever hangs.
TEST_F(ContentionTest, AStopDuringACallThatHangsIsOverWithinGraceAndCallDeadline) {
  start();
  const std::string id = machine->wire_id();
  const LocalTime latest = now + machine->timing().patience + machine->timing().call_deadline;
  EXPECT_FALSE(stop().over);
  const Effects effects = let_call_hang();
  EXPECT_EQ(now, latest);
  EXPECT_TRUE(effects.over);
  EXPECT_FALSE(effects.ask);
  EXPECT_EQ(ids(effects), Ids{id}) << "its take may still arrive";
  const Effects late = answer(owned_by(id));
  EXPECT_FALSE(late.began || late.change || late.ask);
  EXPECT_EQ(machine->phase(), Phase::kIdle);
}

TEST_F(ContentionTest, AStopWhoseReleaseHangsIsOverWithinGraceAndCallDeadline) {
  hold();
  const std::string id = machine->wire_id();
  const LocalTime latest = now + machine->timing().patience + machine->timing().call_deadline;
  stop();
  now += machine->timing().patience - 1ms;
  EXPECT_TRUE(work_done().ask);
  while (machine->phase() != Phase::kIdle) {
    EXPECT_LE(machine->next_timer(), latest);
    const Effects effects = let_call_hang();
    if (effects.over) {
      EXPECT_EQ(ids(effects), Ids{id});
    }
  }
  EXPECT_EQ(now, latest);
  start();  // the next life waits for the call that hangs, and is not misled by its answer
  EXPECT_FALSE(answer(owned_by(id)).began);
}

TEST_F(ContentionTest, AStopOfAnObserverWhoseQuestionHangsLeavesNothing) {
  start(Goal::kObserve);
  stop();
  const Effects effects = let_call_hang();
  EXPECT_TRUE(effects.over);
  EXPECT_TRUE(effects.retired.empty());
}

// Who gave way because of the maximum hold time goes on: nobody waits for its end.
TEST_F(ContentionTest, AReleaseWithoutAStopHasItsWholeTime) {
  ContendOptions options = calm();
  options.max_hold = 2s;
  configure(options);
  hold();
  now += 2s;
  see(machine->timer(now));
  const LocalTime asked = now;
  EXPECT_TRUE(work_done().ask);
  while (machine->phase() == Phase::kReleasing) let_call_hang();
  EXPECT_EQ(now, asked + 2 * machine->timing().call_deadline);
}

TEST_F(ContentionTest, AStopAfterAnAmbiguousTakeReleasesIt) {
  start();
  fail(Errc::kTimeout);
  const Effects effects = stop();
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kRelease);
  EXPECT_FALSE(effects.over);
}

// Its claim may arrive after the release.
TEST_F(ContentionTest, AnAmbiguousTakeIsRememberedAfterItsRelease) {
  start();
  const std::string id = machine->wire_id();
  fail(Errc::kTimeout);
  stop();
  const Effects effects = answer(nobodys());
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(effects.former, id);
}

TEST_F(ContentionTest, AStopWhileEndingChangesNothing) {
  hold();
  stop();
  const LocalTime grace_end = machine->next_timer();
  now += 100ms;
  const Effects again = stop();
  EXPECT_FALSE(again.ended || again.change || again.over);
  EXPECT_EQ(machine->next_timer(), grace_end);
}

TEST_F(ContentionTest, AStopWhileDrainingIsOverWhenTheWorkReturns) {
  hold();
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  EXPECT_FALSE(stop().over);
  const Effects effects = work_done();
  EXPECT_TRUE(effects.over);
  EXPECT_FALSE(effects.ask);
  EXPECT_EQ(effects.retired.size(), 1U);
}

TEST_F(ContentionTest, AStopWhileDrainingWaitsForTheGraceAndNoLonger) {
  hold();
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  stop();
  EXPECT_EQ(machine->next_timer(), now + 1s);
  const Effects effects = let_timer_come();
  EXPECT_TRUE(effects.over);
  EXPECT_TRUE(effects.retired.empty());  // the work still runs
}

TEST_F(ContentionTest, AStopWhileReleasingIsOverWithTheRelease) {
  ContendOptions options = calm();
  options.max_hold = 1s;
  configure(options);
  hold();
  let_timer_come();
  ASSERT_EQ(machine->phase(), Phase::kEnding);
  work_done();
  ASSERT_EQ(machine->phase(), Phase::kReleasing);
  EXPECT_FALSE(stop().over);
  EXPECT_TRUE(answer(nobodys()).over);
}

TEST_F(ContentionTest, AnObserverStopsAtOnceOrWithItsAnswer) {
  start(Goal::kObserve);
  EXPECT_FALSE(stop().over);
  EXPECT_TRUE(answer(owned_by("other~1")).over);
  start(Goal::kObserve);
  answer(owned_by("other~1"));
  const Effects effects = stop();
  EXPECT_TRUE(effects.over);
  EXPECT_TRUE(effects.retired.empty());
}

TEST_F(ContentionTest, Original14NothingHappensAfterTheEnd) {
  wait_for_other();
  wake();
  const std::uint64_t number = ask.number;
  stop();
  answer(owned_by("other~1"));
  ASSERT_EQ(machine->phase(), Phase::kIdle);
  const Effects late = machine->answered(number, mine(), sent, now);
  EXPECT_FALSE(late.began || late.change || late.ask || late.over);
  EXPECT_FALSE(machine->wake(now).ask);
  EXPECT_FALSE(machine->overheard(mine(), now, now).change);
  EXPECT_FALSE(machine->timer(now + 1h).ask);
  EXPECT_EQ(machine->phase(), Phase::kIdle);
}

// --- give_up in every phase ---

TEST_F(ContentionTest, GivingUpWhileWaitingLeavesNothing) {
  wait_for_other();
  const Effects effects = give_up();
  EXPECT_TRUE(effects.over);
  EXPECT_TRUE(effects.retired.empty());
  EXPECT_EQ(machine->next_timer(), LocalTime::max());
}

TEST_F(ContentionTest, Original03GivingUpDuringATakeEndsTheContentionAndGivesBackWhatItMayLeave) {
  start(Goal::kOnce);
  const std::string id = machine->wire_id();
  const Effects effects = give_up();
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(ids(effects), Ids{id});
  EXPECT_GE(effects.retired.front().until, now + 16s);
  const Effects late = answer(mine());
  EXPECT_FALSE(late.began || late.change || late.ask);
  EXPECT_FALSE(machine->term());
  EXPECT_EQ(machine->phase(), Phase::kIdle);
  EXPECT_TRUE(start(Goal::kOnce).ask);  // and it is usable again
  EXPECT_NE(ask.wire_id, id);
}

TEST_F(ContentionTest, GivingUpAfterAnAmbiguousTakeGivesItBack) {
  start(Goal::kOnce);
  const std::string id = machine->wire_id();
  fail(Errc::kTimeout);
  EXPECT_EQ(ids(give_up()), Ids{id});
}

TEST_F(ContentionTest, GivingUpDuringAPollLeavesNothing) {
  wait_for_other();
  let_timer_come();
  ASSERT_EQ(ask.kind, CallKind::kObserve);
  EXPECT_TRUE(give_up().retired.empty());
}

TEST_F(ContentionTest, AWaiterThatGivesUpLeavesTheQueueOfTheStore) {
  configure(calm(), Queue::kYes);
  wait_for_other();
  const std::string id = machine->wire_id();
  const Effects effects = give_up();
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(ids(effects), Ids{id}) << "its place in the queue stays behind";
}

TEST_F(ContentionTest, OnlyAnAttemptCanBeGivenUp) {
  EXPECT_FALSE(give_up().over);
  hold();
  EXPECT_FALSE(give_up().over);
  EXPECT_EQ(machine->phase(), Phase::kHolding);
  stop();
  EXPECT_FALSE(give_up().over);
  EXPECT_EQ(machine->phase(), Phase::kEnding);
  work_done();
  EXPECT_FALSE(give_up().over);
  EXPECT_EQ(machine->phase(), Phase::kReleasing);
  answer(nobodys());
  start();
  stop();
  ASSERT_EQ(machine->phase(), Phase::kStopping);
  EXPECT_FALSE(give_up().over);
  answer(owned_by("other~1"));
  hold();
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  EXPECT_FALSE(give_up().over);
  EXPECT_EQ(machine->phase(), Phase::kDraining);
}

}  // namespace
}  // namespace simba::core
