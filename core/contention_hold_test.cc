#include "core/contention_fixture.h"

namespace simba::core {
namespace {

// --- holding ---

TEST_F(ContentionTest, NodeRedlock169TheLeaseIsCountedFromBeforeTheRequestWasSent) {
  start();
  now += 800ms;
  answer(mine());
  const TermTimes term = *machine->term();
  EXPECT_EQ(term.sent, sent);
  EXPECT_EQ(term.ttl_end, sent + 10s);
  EXPECT_EQ(term.revoke_at, sent + 14840ms);
}

TEST_F(ContentionTest, RenewsAtTwoThirdsWithItsToken) {
  hold();
  const LocalTime s = sent;
  EXPECT_NEAR(static_cast<double>((machine->next_timer() - s).count()), 10e9 * 2 / 3, 2);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kRenew);
  EXPECT_EQ(ask.token, 7U);
  EXPECT_EQ(ask.wire_id, machine->wire_id());
  EXPECT_EQ(ask.deadline, now + 1250ms);
}

TEST_F(ContentionTest, ARenewalMovesAllDeadlinesAndIsNotTold) {
  hold();
  let_timer_come();
  now += 100ms;
  const Effects effects = answer(mine());
  EXPECT_FALSE(effects.change || effects.began || effects.ended);
  EXPECT_EQ(machine->term()->ttl_end, sent + 10s);
  EXPECT_EQ(machine->term()->revoke_at, sent + 14840ms);
  EXPECT_EQ(machine->term()->token, 7U);
}

TEST_F(ContentionTest, AHealthyOwnerNeverLeavesItsTtl) {
  hold();
  for (int i = 0; i < 1000; ++i) {
    let_timer_come();
    ASSERT_EQ(ask.kind, CallKind::kRenew);
    now += 900ms;
    ASSERT_LT(now, machine->term()->ttl_end);
    answer(mine());
  }
  EXPECT_EQ(machine->phase(), Phase::kHolding);
}

TEST_F(ContentionTest, TwoAttemptsToRenewFitIntoTheTtl) {
  hold();
  const LocalTime ttl_end = machine->term()->ttl_end;
  let_timer_come();
  now = ask.deadline;
  fail(Errc::kTimeout);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kRenew);
  EXPECT_LE(ask.deadline, ttl_end);
}

TEST_F(ContentionTest, TwoAttemptsToRenewFitIntoTheSmallestLease) {
  ContendOptions options = calm();
  options.ttl = 150ms;
  options.transition = 0ms;
  configure(options);
  start();
  answer(owned_by(machine->wire_id(), 7, 150ms, 150ms));
  const LocalTime revoke_at = machine->term()->revoke_at;
  EXPECT_EQ(revoke_at, now + 100ms);
  let_timer_come();
  now = ask.deadline;
  fail(Errc::kTimeout);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_LE(ask.deadline, revoke_at);
}

TEST_F(ContentionTest, AnErrorWhileRenewingDoesNotEndTheTerm) {
  hold();
  let_timer_come();
  const Effects effects = fail();
  EXPECT_FALSE(effects.ended || effects.change);
  EXPECT_EQ(machine->phase(), Phase::kHolding);
  let_timer_come();
  EXPECT_EQ(ask.kind, CallKind::kRenew);
  answer(mine());
  EXPECT_EQ(machine->term()->revoke_at, sent + 14840ms);
}

TEST_F(ContentionTest, Redisson775RenewalGoesOnAfterAnErrorForEver) {
  hold();
  for (int i = 0; i < 200; ++i) {
    let_timer_come();
    fail();
    ASSERT_TRUE(let_timer_come().ask) << i;
    ASSERT_EQ(ask.kind, CallKind::kRenew);
    answer(mine());
  }
  EXPECT_EQ(machine->phase(), Phase::kHolding);
}

TEST_F(ContentionTest, Original07ATermThatCannotBeRenewedEndsAtRevokeAt) {
  hold();
  const LocalTime revoke_at = machine->term()->revoke_at;
  Effects effects;
  while (machine->phase() == Phase::kHolding) {
    effects = let_timer_come();
    if (under_way) effects = fail();
  }
  EXPECT_EQ(now, revoke_at);
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kUnreachable);
  ASSERT_TRUE(effects.change);
  EXPECT_TRUE(effects.change->is_released());
  EXPECT_EQ(effects.change->loss.reason, LossReason::kUnreachable);
  EXPECT_FALSE(machine->term());
  EXPECT_EQ(machine->phase(), Phase::kDraining);
}

TEST_F(ContentionTest, AHungRenewalDoesNotDelayTheEndOfTheTerm) {
  hold();
  const LocalTime revoke_at = machine->term()->revoke_at;
  Effects effects;
  while (!effects.ended) {
    under_way = false;  // it hangs
    effects = let_timer_come();
    ASSERT_LE(now, revoke_at);
  }
  EXPECT_EQ(now, revoke_at);
  EXPECT_EQ(effects.ended->reason, LossReason::kUnreachable);
}

TEST_F(ContentionTest, NoCallOfATermOutlivesIt) {
  ContendOptions options = calm();
  options.renew_at = 1.0;
  configure(options);
  hold();
  const LocalTime revoke_at = machine->term()->revoke_at;
  while (machine->phase() == Phase::kHolding) {
    let_timer_come();
    if (!under_way) continue;
    EXPECT_LE(ask.deadline, revoke_at);
    now = std::min(ask.deadline, revoke_at - 1ns);
    fail(Errc::kTimeout);
  }
}

TEST_F(ContentionTest, Curator696ARenewalThatSucceedsTooLateRevivesNothing) {
  hold();
  let_timer_come();
  const std::string id = machine->wire_id();
  Observation late = mine();
  now = machine->term()->revoke_at;
  const Effects effects = answer(late);
  ASSERT_TRUE(effects.ended);
  EXPECT_FALSE(machine->term());
  EXPECT_EQ(machine->phase(), Phase::kDraining);
  EXPECT_EQ(ids(work_done()), Ids{id});  // it may stand in the store: released by its id
  EXPECT_NE(machine->wire_id(), id);
}

TEST_F(ContentionTest, AWatchdogThatComesFarTooLateStoodStill) {
  hold();
  now = machine->term()->revoke_at + 1s;
  const Effects effects = see(machine->timer(now));
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kClockJump);
}

TEST_F(ContentionTest, EveryEventEndsATermWhoseTimeHasPassed) {
  const std::string other = "other~1";
  for (int event = 0; event < 5; ++event) {
    under_way = false;
    configure(calm());
    hold();
    let_timer_come();
    now = machine->term()->revoke_at;
    Effects effects;
    switch (event) {
      case 0:
        effects = machine->timer(now);
        break;
      case 1:
        effects = machine->stop(now);
        break;
      case 2:
        effects = machine->wake(now);
        break;
      case 3:
        effects = machine->failed(ask.number, Errc::kTimeout, now);
        break;
      case 4:
        effects = machine->work_done("nobody~1", now);
        break;
    }
    EXPECT_TRUE(effects.ended) << event;
    EXPECT_FALSE(machine->term()) << event;
  }
}

TEST_F(ContentionTest, ATermSupersededByAnotherOwnerEndsAtOnce) {
  hold();
  let_timer_come();
  const Effects effects = answer(owned_by("other~9", 8));
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kSuperseded);
  EXPECT_EQ(effects.ended->superseded_by, "other~9");
  ASSERT_TRUE(effects.change);
  EXPECT_TRUE(effects.change->is_released());
  EXPECT_EQ(effects.change->after.id, "other~9");
  EXPECT_TRUE(ids(work_done()).empty());  // the store said that it is not ours: nothing to release
}

TEST_F(ContentionTest, ATermAnsweredWithAnotherTokenEndsAtOnce) {
  hold();
  let_timer_come();
  const Effects effects = answer(mine(8));
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kSuperseded);
  EXPECT_FALSE(machine->term());
  ASSERT_TRUE(effects.change);
  EXPECT_TRUE(effects.change->is_released());
}

TEST_F(ContentionTest, AnIdTheStoreStillNamesUnderAnotherTokenIsGivenBack) {
  hold();
  const std::string id = machine->wire_id();
  let_timer_come();
  answer(mine(8));
  EXPECT_EQ(ids(work_done()), Ids{id});
}

TEST_F(ContentionTest, ATermAnsweredWithoutATokenEnds) {
  hold();
  let_timer_come();
  EXPECT_TRUE(answer(mine(0)).ended);
  EXPECT_FALSE(machine->term());
}

TEST_F(ContentionTest, AnEvictedOwnerHearsThatItWasForced) {
  hold();
  let_timer_come();
  const Effects effects = answer(owned_by("", 7));
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kForced);
}

TEST_F(ContentionTest, ALeaseThatTheStoreCallsOverIsOver) {
  hold();
  let_timer_come();
  Observation seen = mine();
  seen.owner.transition_at = seen.now - 1ms;
  const Effects effects = answer(seen);
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kExpired);
}

TEST_F(ContentionTest, TheTermsOfAReplacedStoreAreOver) {
  hold();
  let_timer_come();
  const Effects effects = fail(Errc::kReplaced);
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kReplaced);
  EXPECT_TRUE(ids(work_done()).empty());  // the new store never heard of it
}

TEST_F(ContentionTest, Etcd11456AGrantThatArrivesAfterItsTtlIsGivenBackNeverAdopted) {
  start();
  const std::string id = machine->wire_id();
  Observation late = mine();
  now = sent + 10s;
  const Effects effects = answer(late);
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(machine->term());
  EXPECT_EQ(ids(effects), Ids{id});
  EXPECT_EQ(machine->phase(), Phase::kTrying);
  EXPECT_NE(machine->wire_id(), id);
}

TEST_F(ContentionTest, AStoreThatGrantsLessIsTakenAtItsWord) {
  start();
  answer(owned_by(machine->wire_id(), 7, 5s, 8s));  // half of what was asked for
  EXPECT_EQ(machine->term()->revoke_at, sent + 8s - 1160ms);
  EXPECT_EQ(machine->term()->ttl_end, sent + 5s);
}

TEST_F(ContentionTest, AStoreThatGrantsLessIsAskedToRenewInTime) {
  start();
  answer(owned_by(machine->wire_id(), 7, 4s, 4s));
  const TermTimes term = *machine->term();
  const nanoseconds window = term.ttl_end - term.sent;
  EXPECT_EQ(term.revoke_at, sent + 2840ms);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kRenew);
  EXPECT_LE(now, term.sent + window * 2 / 3 + 1ns);
  now = ask.deadline;
  fail(Errc::kTimeout);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_LE(ask.deadline, term.ttl_end);  // two attempts fit, as always
}

TEST_F(ContentionTest, Original09AStoreThatGrantsNextToNothingIsNotAskedInALoop) {
  start();
  const Effects effects =
      answer(owned_by(machine->wire_id(), 7, 500ms, 500ms));  // less than the guard
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(effects.ask);
  EXPECT_GE(machine->next_timer(), now + 30ms);
}

TEST_F(ContentionTest, AStoreThatGrantsMoreIsNotBelieved) {
  start();
  answer(owned_by(machine->wire_id(), 7, 1h, 2h));
  EXPECT_EQ(machine->term()->revoke_at, sent + 14840ms);
  EXPECT_EQ(machine->term()->ttl_end, sent + 10s);
}

TEST_F(ContentionTest, RenewsAtTheEndOfItsTtlWhereThatIsAskedFor) {
  ContendOptions options = calm();
  options.renew_at = 1.0;
  configure(options);
  hold();
  EXPECT_EQ(machine->next_timer(), sent + 10s);
}

// --- meeting others ---

TEST_F(ContentionTest, ARenewalComesUpToAQuarterSoonerToMeetOthers) {
  ContendOptions options = calm();
  options.renew_at = 0.8;  // of 10 s: they meet every 2 s
  configure(options);
  const LocalTime begin = now;
  for (const auto& [took, due] : {std::pair{0s, 8s}, {1s, 8s}, {2s, 10s}, {3s, 10s}}) {
    now = begin + took;
    hold(Goal::kOnce);
    EXPECT_EQ(machine->next_timer(), begin + due) << took.count();
    now = begin + due;
    ASSERT_TRUE(see(machine->timer(now)).ask);
    now += 100ms;
    answer(mine());
    EXPECT_EQ(machine->next_timer(), begin + due + 8s) << "from then on it is in step";
    end_term();
    answer(nobodys());
  }
}

TEST_F(ContentionTest, WhoWasGrantedLittleRenewsWhenItHasToAndNotToMeetOthers) {
  start(Goal::kOnce);
  answer(owned_by(machine->wire_id(), 7, 2500ms, 16s));
  const nanoseconds scaled = machine->timing().renew / 4;
  EXPECT_NEAR(static_cast<double>((machine->next_timer() - now - scaled).count()), 0, 10);
  now += 200ms;
  end_term();
  answer(nobodys());
  start(Goal::kOnce);
  answer(owned_by(machine->wire_id(), 7, 2500ms, 16s));
  EXPECT_LE(machine->next_timer(), now + scaled);
  EXPECT_GE(machine->next_timer(), now + scaled * 3 / 4);
}

}  // namespace
}  // namespace simba::core
