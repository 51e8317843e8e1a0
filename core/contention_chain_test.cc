#include "core/contention_fixture.h"

namespace simba::core {
namespace {

// --- the ambiguous take ---

TEST_F(ContentionTest, AnAmbiguousTakeIsRepeatedUnderTheSameIdAndGrantedOnce) {
  start();
  const std::string id = ask.wire_id;
  fail(Errc::kTimeout);
  EXPECT_FALSE(machine->term());
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
  EXPECT_EQ(ask.wire_id, id);
  const Effects effects = answer(mine());
  EXPECT_TRUE(effects.began);
  EXPECT_TRUE(effects.retired.empty());
  EXPECT_EQ(machine->wire_id(), id);
}

TEST_F(ContentionTest, ThePausesAfterErrorsGrowUpToTheLongestBackoff) {
  start();
  const nanoseconds longest = 625ms;
  for (int failures = 1; failures <= 10; ++failures) {
    fail();
    const nanoseconds pause = machine->next_timer() - now;
    const nanoseconds most = longest / 8 * (1 << std::min(failures - 1, 3));
    EXPECT_GE(pause, most / 2 - 1ns) << failures;
    EXPECT_LE(pause, most) << failures;
    let_timer_come();
  }
}

TEST_F(ContentionTest, AnAnswerEndsTheGrowthOfThePauses) {
  start();
  for (int i = 0; i < 5; ++i) {
    fail();
    let_timer_come();
  }
  answer(owned_by("other~1"));
  let_timer_come();
  fail();
  EXPECT_LE(machine->next_timer(), now + 625ms / 8);
}

TEST_F(ContentionTest, Original08NoErrorEndsTheLoop) {
  start();
  for (const Errc code : {Errc::kUnreachable, Errc::kDenied, Errc::kTimeout, Errc::kMisconfigured,
                          Errc::kCorrupt, Errc::kReplaced}) {
    fail(code);
    EXPECT_EQ(machine->phase(), Phase::kTrying);
    EXPECT_TRUE(let_timer_come().ask);
  }
  EXPECT_TRUE(answer(mine()).began);
}

TEST_F(ContentionTest, ACallThatHangsInTheDriverIsNotWaitedForForEver) {
  start();
  EXPECT_EQ(machine->next_timer(), now + 2500ms);  // its deadline twice over
  const Effects effects = let_call_hang();
  EXPECT_FALSE(effects.ask);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
}

// --- one chain ---

TEST_F(ContentionTest, Original06AWakeUpDuringACallBecomesOneImmediateRetry) {
  wait_for_other();
  wake();
  EXPECT_FALSE(wake().ask);
  EXPECT_FALSE(wake().ask);
  EXPECT_FALSE(wake().ask);
  ASSERT_TRUE(answer(owned_by("other~1")).ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
  EXPECT_FALSE(answer(owned_by("other~1")).ask);  // one retry, not three
}

TEST_F(ContentionTest, AWakeUpDuringAPollBecomesATake) {
  wait_for_other();
  let_timer_come();
  ASSERT_EQ(ask.kind, CallKind::kObserve);
  wake();
  ASSERT_TRUE(answer(owned_by("other~1")).ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
}

TEST_F(ContentionTest, AWakeUpMovesTheNextQuestionForwardAndLeavesNoSecondTimer) {
  wait_for_other();
  now += 200ms;
  ASSERT_TRUE(wake().ask);
  answer(owned_by("other~1"));
  EXPECT_EQ(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, AWakeUpMeansNothingToAnIdleOneAndToAnOwner) {
  EXPECT_FALSE(wake().ask);
  hold();
  EXPECT_FALSE(wake().ask);
  EXPECT_EQ(machine->phase(), Phase::kHolding);
}

TEST_F(ContentionTest, WhatOthersHeardSavesThePoll) {
  wait_for_other();
  now += 900ms;
  EXPECT_FALSE(see(machine->overheard(owned_by("other~1"), now, now)).ask);
  EXPECT_EQ(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, WhatOthersHeardEarlierThanIDidIsIgnored) {
  const Observation old = owned_by("old~1");
  const LocalTime before = now;
  now += 1s;
  wait_for_other();
  EXPECT_FALSE(see(machine->overheard(old, before, now)).change);
  EXPECT_EQ(machine->owner().id, "other~1");
}

// --- restart ---

TEST_F(ContentionTest, Original05ALateGrantOfAnEarlierLifeDoesNotTouchTheNextOne) {
  start(Goal::kOnce);
  const Ask old = ask;
  const LocalTime old_sent = sent;
  const Observation late = mine();
  give_up();
  under_way = false;
  now += 10ms;
  EXPECT_FALSE(start(Goal::kOnce).ask);  // one call at a time
  const Effects effects = see(machine->answered(old.number, late, old_sent, now));
  EXPECT_FALSE(effects.began);
  ASSERT_TRUE(effects.ask);
  EXPECT_NE(effects.ask->wire_id, old.wire_id);
  EXPECT_TRUE(answer(mine(8)).began);
  EXPECT_EQ(machine->term()->token, 8U);
}

TEST_F(ContentionTest, AHungCallOfAnEarlierLifeDelaysTheNextNoLongerThanItsOverdue) {
  start(Goal::kOnce);
  const LocalTime overdue = machine->next_timer();
  give_up();
  under_way = false;
  now += 100ms;
  EXPECT_FALSE(start(Goal::kOnce).ask);
  EXPECT_EQ(machine->next_timer(), overdue);
  EXPECT_TRUE(let_timer_come().ask);
}

TEST_F(ContentionTest, AStopBeforeTheHungCallOfAnEarlierLifeReturnsIsOverAtOnce) {
  start(Goal::kOnce);
  give_up();
  under_way = false;
  start(Goal::kOnce);
  EXPECT_TRUE(stop().over);
}

TEST_F(ContentionTest, CanBeStartedAgainAfterEveryEnd) {
  for (int i = 0; i < 3; ++i) {
    hold();
    end_term();
    EXPECT_TRUE(answer(nobodys()).over);
    wait_for_other();
    EXPECT_TRUE(stop().over);
    start();
    give_up();
    answer(mine());
  }
  EXPECT_TRUE(hold().began);
}

TEST_F(ContentionTest, ANewLifeKnowsNothingOfTheOldOne) {
  wait_for_other();
  stop();
  start();
  EXPECT_FALSE(machine->has_answer());
  EXPECT_FALSE(machine->is_stopping());
  EXPECT_EQ(machine->owner(), MutexOwner::none());
}

// --- observers ---

TEST_F(ContentionTest, AnObserverIsToldOfEachOwner) {
  start(Goal::kObserve);
  const Effects first = answer(owned_by("a~1"));
  ASSERT_TRUE(first.change);
  EXPECT_EQ(first.change->self, "");
  EXPECT_EQ(first.change->before.id, "");
  EXPECT_EQ(first.change->after.id, "a~1");
  wake();
  EXPECT_FALSE(answer(owned_by("a~1")).change);
  wake();
  const Effects second = answer(owned_by("b~1", 8));
  ASSERT_TRUE(second.change);
  EXPECT_EQ(second.change->before.id, "a~1");
  EXPECT_EQ(second.change->after.id, "b~1");
}

TEST_F(ContentionTest, AnObserverNeverTakes) {
  start(Goal::kObserve);
  for (const Observation& seen : {nobodys(), owned_by("a~1"), nobodys(), owned_by("")}) {
    const Effects effects = answer(seen);
    if (!effects.ask) let_timer_come();
    EXPECT_EQ(ask.kind, CallKind::kObserve);
  }
  wake();
  answer(nobodys());
  wake();
  EXPECT_EQ(ask.kind, CallKind::kObserve);
}

TEST_F(ContentionTest, AnObserverAsksAgainByTheEndOfTheLeaseItKnows) {
  machine->set_pushed(true);
  start(Goal::kObserve);
  answer(owned_by("a~1", 7, 1s, 2s));
  EXPECT_EQ(machine->next_timer(), now + 2001ms);
}

TEST_F(ContentionTest, AnObserverIsToldWhenTheLeaseOfADeadOwnerHasEnded) {
  start(Goal::kObserve);
  Observation seen = owned_by("dead~1", 7, 100ms, 300ms);
  answer(seen);
  let_timer_come();
  seen.now = store_now();
  ASSERT_TRUE(seen.is_free());
  const Effects effects = answer(seen);  // its row stays until the next owner comes
  ASSERT_TRUE(effects.change);
  EXPECT_EQ(effects.change->before.id, "dead~1");
  EXPECT_EQ(effects.change->after.id, "");
}

TEST_F(ContentionTest, AnObserverOfAFreeMutexLooksSoonForTheNextOwnerThenPolls) {
  machine->set_pushed(true);
  start(Goal::kObserve);
  for (const milliseconds pause :
       {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    answer(nobodys());
    EXPECT_EQ(machine->next_timer(), now + pause);
    let_timer_come();
  }
  answer(owned_by("a~1"));
  wake();
  answer(nobodys());
  EXPECT_EQ(machine->next_timer(), now + 50ms) << "it is free anew";
}

TEST_F(ContentionTest, WithoutPushAnObserverOfAFreeMutexPollsEachSecond) {
  start(Goal::kObserve);
  for (int i = 0; i < 20; ++i) {
    answer(nobodys());
    EXPECT_LE(machine->next_timer(), now + 1s);
    let_timer_come();
  }
  answer(nobodys());
  EXPECT_EQ(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, ABlindObserverPollsEvenWhereNoPollIsAskedFor) {
  ContendOptions options = calm();
  options.safety_poll = 0ms;
  configure(options);
  start(Goal::kObserve);
  answer(nobodys());
  EXPECT_LE(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, AnObserverHearsWhatOthersHeard) {
  start(Goal::kObserve);
  answer(nobodys());
  const Effects effects = see(machine->overheard(owned_by("a~1"), now, now));
  ASSERT_TRUE(effects.change);
  EXPECT_EQ(effects.change->after.id, "a~1");
}

// --- what is told ---

TEST_F(ContentionTest, Original01EachChangeIsToldOnceWithItsOwnBeforeAndAfter) {
  std::string last;
  int acquired = 0, released = 0;
  const auto follow = [&](const Effects& effects) {
    if (!effects.change) return;
    EXPECT_EQ(effects.change->before.id, last);
    EXPECT_NE(effects.change->after.id, last);
    last = effects.change->after.id;
    acquired += effects.change->is_acquired();
    released += effects.change->is_released();
    EXPECT_LE(released, acquired);
    EXPECT_LE(acquired - released, 1);
  };
  follow(start());
  follow(answer(owned_by("other~1")));
  follow(wake());
  follow(answer(owned_by("other~2", 8)));
  follow(wake());
  follow(answer(mine(9)));
  follow(let_timer_come());
  follow(answer(mine(9)));
  follow(let_timer_come());
  follow(answer(owned_by("other~3", 10)));
  follow(work_done());
  follow(answer(owned_by("other~3", 10)));
  follow(wake());
  follow(answer(mine(11)));
  follow(stop());
  follow(work_done());
  follow(answer(nobodys()));
  EXPECT_EQ(acquired, 2);
  EXPECT_EQ(released, 2);
  EXPECT_EQ(last, "");
}

TEST_F(ContentionTest, WhoSharesAQuestionDoesNotBelieveOldNews) {
  start(Goal::kObserve);
  const LocalTime before = now;
  const Observation old_news = owned_by("old~1", 7);
  now += 1s;
  answer(owned_by("new~1", 8));
  let_timer_come();
  sent = before;  // somebody else's question, which it joined
  EXPECT_FALSE(answer(old_news).change);
  EXPECT_EQ(machine->owner().id, "new~1");
}

TEST_F(ContentionTest, WhatIsOlderThanTheLastItHeardIsNoNewsInItsNextLifeEither) {
  start(Goal::kObserve);
  const LocalTime before = now;
  now += 1s;
  answer(owned_by("new~1", 8));
  see(machine->stop(now));
  start(Goal::kObserve);
  fail();
  EXPECT_FALSE(see(machine->overheard(owned_by("old~1", 7), before, now)).change);
  EXPECT_TRUE(see(machine->overheard(owned_by("new~1", 8), now, now)).change);
}

TEST_F(ContentionTest, TheAnswerToAQuestionOfItsOwnIsNewsWhateverTheClockOfTheStore) {
  start(Goal::kObserve);
  answer(owned_by("old~1", 7));
  let_timer_come();
  Observation next = owned_by("next~1", 8);
  next.now -= 1h;
  next.owner.transition_at -= 1h;
  EXPECT_TRUE(answer(next).change);
  EXPECT_EQ(machine->owner().id, "next~1");
}

}  // namespace
}  // namespace simba::core
