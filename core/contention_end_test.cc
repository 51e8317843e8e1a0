#include "core/contention_fixture.h"

namespace simba::core {
namespace {

// --- the end of a term ---

TEST_F(ContentionTest, ClientGo728AStopEndsTheTermOnlyWhenTheWorkHasReturned) {
  hold();
  const std::string id = machine->wire_id();
  const Effects ending = stop();
  EXPECT_EQ(machine->phase(), Phase::kEnding);
  ASSERT_TRUE(ending.ended);
  EXPECT_EQ(ending.ended->reason, LossReason::kReleased);
  ASSERT_TRUE(ending.change);
  EXPECT_TRUE(ending.change->is_released());
  EXPECT_FALSE(ending.ask);
  EXPECT_TRUE(machine->term());  // still ours

  const Effects releasing = work_done();
  ASSERT_TRUE(releasing.ask);
  EXPECT_EQ(releasing.ask->kind, CallKind::kRelease);
  EXPECT_EQ(releasing.ask->wire_id, id);
  EXPECT_FALSE(machine->term());  // before the store is told
  EXPECT_FALSE(releasing.over);

  const Effects over = answer(nobodys());
  EXPECT_TRUE(over.over);
  EXPECT_EQ(machine->phase(), Phase::kIdle);
  EXPECT_EQ(machine->next_timer(), LocalTime::max());
}

TEST_F(ContentionTest, TheTermIsRenewedWhileTheWorkReturns) {
  ContendOptions options = calm();
  options.transition = 60s;
  options.grace = 30s;
  configure(options);
  start();
  answer(owned_by(machine->wire_id(), 7, 10s, 70s));
  stop();
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kRenew);
  answer(owned_by(machine->wire_id(), 7, 10s, 70s));
  EXPECT_EQ(machine->phase(), Phase::kEnding);
  EXPECT_EQ(machine->term()->sent, sent);
}

TEST_F(ContentionTest, ARenewalWhileTheWorkReturnsIsNotMistakenForAnAcquisition) {
  ContendOptions options = calm();
  options.grace = 900ms;
  options.max_hold = 6s;
  configure(options);
  hold();
  std::string told = machine->wire_id();  // what the user knows as the owner
  const auto follow = [&](const Effects& effects) {
    if (!effects.change) return;
    EXPECT_EQ(effects.change->before.id, told);
    told = effects.change->after.id;
  };
  while (machine->phase() == Phase::kHolding) follow(let_timer_come());
  ASSERT_EQ(machine->phase(), Phase::kEnding);
  follow(let_timer_come());
  ASSERT_EQ(ask.kind, CallKind::kRenew);
  follow(answer(mine()));
  follow(work_done());
  follow(answer(nobodys()));
  if (!under_way) follow(let_timer_come());
  ASSERT_EQ(ask.kind, CallKind::kTake);
  follow(answer(owned_by("other~1", 8)));
  EXPECT_EQ(told, "other~1");
}

TEST_F(ContentionTest, AReleaseWaitsForTheRenewalUnderWay) {
  hold();
  let_timer_come();
  stop();
  EXPECT_FALSE(work_done().ask);
  EXPECT_EQ(machine->phase(), Phase::kReleasing);
  EXPECT_FALSE(machine->term());
  const Effects effects = answer(mine());  // the renewal's
  EXPECT_FALSE(machine->term());
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kRelease);
}

TEST_F(ContentionTest, WorkThatOutlivesItsGraceIsAbandonedAndNothingIsReleased) {
  hold();
  stop();
  const LocalTime revoke_at = machine->term()->revoke_at;
  EXPECT_EQ(machine->next_timer(), now + 1s);
  const Effects effects = let_timer_come();
  ASSERT_TRUE(effects.ended);
  EXPECT_EQ(effects.ended->reason, LossReason::kAbandoned);
  EXPECT_TRUE(effects.over);
  EXPECT_TRUE(effects.retired.empty());
  EXPECT_FALSE(effects.ask);
  EXPECT_FALSE(effects.change);  // its end was told when it began to end
  ASSERT_TRUE(machine->term());
  EXPECT_EQ(machine->term()->revoke_at, revoke_at);  // the lease runs out
  EXPECT_FALSE(work_done().ask);
}

// From then on its id may be given back, and somebody else may enter.
TEST_F(ContentionTest, AnAbandonedTermIsOverWhenItsWorkReturns) {
  ContendOptions options = calm();
  options.max_hold = 5s;
  configure(options);
  hold();
  Effects effects;
  while (!effects.ended || effects.ended->reason != LossReason::kAbandoned) {
    effects = let_timer_come();
  }
  EXPECT_TRUE(machine->term()) << "the lease runs, and so does the work";
  work_done();
  EXPECT_FALSE(machine->term());
}

TEST_F(ContentionTest, AStopWithoutAnyGraceStillReleasesWhatIsDoneAtOnce) {
  ContendOptions options = calm();
  options.transition = 0ms;
  configure(options);
  start();
  answer(owned_by(machine->wire_id(), 7, 10s, 10s));
  const Effects ending = stop();
  EXPECT_FALSE(ending.over);
  const Effects releasing = work_done();
  ASSERT_TRUE(releasing.ask) << "the mutex stays taken until its lease runs out";
  EXPECT_EQ(releasing.ask->kind, CallKind::kRelease);
}

TEST_F(ContentionTest, ARevokedTermWaitsForTheWorkBeforeAnythingElse) {
  hold();
  const std::string id = machine->wire_id();
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  EXPECT_EQ(machine->phase(), Phase::kDraining);
  EXPECT_EQ(machine->next_timer(), LocalTime::max());
  now += 1h;
  const Effects effects = work_done();
  EXPECT_EQ(ids(effects), Ids{id});
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kTake);
  EXPECT_NE(effects.ask->wire_id, id);
}

TEST_F(ContentionTest, TheWorkOfAnOldTermEndsNothing) {
  hold();
  const std::string old = machine->wire_id();
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  work_done();
  answer(mine(8));
  ASSERT_EQ(machine->phase(), Phase::kHolding);
  stop();
  const Effects effects = machine->work_done(old, now);
  EXPECT_FALSE(effects.ask);
  EXPECT_EQ(machine->phase(), Phase::kEnding);
}

TEST_F(ContentionTest, AWireIdIsNeverUsedAgain) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    hold();
    EXPECT_TRUE(seen.insert(ask.wire_id).second);
    end_term();
    answer(nobodys());
    ASSERT_EQ(machine->phase(), Phase::kIdle);
  }
  hold();
  for (Token token = 100; token < 150; ++token) {
    EXPECT_TRUE(seen.insert(machine->wire_id()).second);
    now = machine->term()->revoke_at;
    see(machine->timer(now));
    work_done();
    answer(mine(token));
  }
}

TEST_F(ContentionTest, TheMaximumHoldTimeEndsAHealthyTerm) {
  ContendOptions options;
  options.jitter = {0ms, 500ms};
  options.max_hold = 30s;
  configure(options);
  const LocalTime began = now;
  hold();
  const std::string id = machine->wire_id();
  while (machine->phase() == Phase::kHolding) {
    const Effects effects = let_timer_come();
    if (under_way) answer(mine());
    if (effects.ended) {
      EXPECT_EQ(effects.ended->reason, LossReason::kReleased);
    }
  }
  EXPECT_EQ(now, began + 30s);
  EXPECT_EQ(machine->phase(), Phase::kEnding);
  work_done();
  EXPECT_EQ(ask.kind, CallKind::kRelease);
  EXPECT_EQ(ask.wire_id, id);
  const Effects after = answer(nobodys());
  EXPECT_FALSE(after.over);  // it contends again, but lets others have a turn first
  EXPECT_EQ(machine->phase(), Phase::kTrying);
  EXPECT_EQ(machine->next_timer(), now + 500ms + 1s) << "they look each second";
}

TEST_F(ContentionTest, AfterTheMaximumHoldTimeOthersWhoAreToldNeedNoMoreThanTheJitter) {
  ContendOptions options;
  options.jitter = {0ms, 500ms};
  options.max_hold = 1s;
  configure(options);
  machine->set_pushed(true);
  hold();
  let_timer_come();
  work_done();
  answer(nobodys());
  EXPECT_EQ(machine->next_timer(), now + 500ms);
}

TEST_F(ContentionTest, ATermOfOneTimeEndsItsLifecycle) {
  hold(Goal::kOnce);
  now = machine->term()->revoke_at;
  see(machine->timer(now));
  const Effects effects = work_done();
  EXPECT_TRUE(effects.over);
  EXPECT_FALSE(effects.ask);
  EXPECT_EQ(effects.retired.size(), 1U);
}

TEST_F(ContentionTest, AReleaseWithoutAnAnswerIsGoneOnWithInTheBackground) {
  hold();
  const std::string id = machine->wire_id();
  end_term();
  const Effects effects = fail(Errc::kTimeout);
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(ids(effects), Ids{id});
  EXPECT_GE(effects.retired.front().until, now + 16s);
}

// A claim that was lost on the way can still arrive, after the release.
TEST_F(ContentionTest, AnIdWhoseTakeWasAmbiguousIsRememberedAfterItsCleanEnd) {
  start();
  const std::string id = machine->wire_id();
  fail(Errc::kTimeout);
  let_timer_come();
  answer(mine());
  end_term();
  const Effects effects = answer(nobodys());
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(effects.former, id);
}

TEST_F(ContentionTest, Redisson1966RenewalStopsWithTheTerm) {
  hold();
  end_term();
  answer(nobodys());
  now += 1h;
  EXPECT_FALSE(machine->timer(now).ask);
  EXPECT_FALSE(machine->wake(now).ask);
}

}  // namespace
}  // namespace simba::core
