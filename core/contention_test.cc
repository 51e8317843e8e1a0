#include "core/contention_fixture.h"

namespace simba::core {
namespace {

// --- start ---

TEST_F(ContentionTest, AnIdleContenderWantsNothing) {
  EXPECT_EQ(machine->phase(), Phase::kIdle);
  EXPECT_EQ(machine->next_timer(), LocalTime::max());
  const Effects effects = machine->timer(now);
  EXPECT_FALSE(effects.ask);
  EXPECT_FALSE(effects.over);
}

TEST_F(ContentionTest, StartsWithATakeUnderANewWireId) {
  const Effects effects = start();
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kTake);
  EXPECT_EQ(effects.ask->token, 0U);
  EXPECT_EQ(label_of(effects.ask->wire_id), "me");
  EXPECT_EQ(effects.ask->deadline, now + 1250ms);
  EXPECT_EQ(machine->phase(), Phase::kTrying);
  EXPECT_FALSE(machine->has_answer());
}

TEST_F(ContentionTest, AnObserverStartsWithAQuestionAndHasNoWireId) {
  const Effects effects = start(Goal::kObserve);
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kObserve);
  EXPECT_EQ(effects.ask->wire_id, "");
}

TEST_F(ContentionTest, AUuidLabelBecomesANewUuidForEachAttempt) {
  const std::string label = ContenderIdGenerator::uuid().generate();
  configure(calm(), Queue::kNo, label);
  start();
  EXPECT_TRUE(is_uuid_label(ask.wire_id));
  EXPECT_NE(ask.wire_id, label);
}

TEST_F(ContentionTest, WaitsForItsInitialDelay) {
  ContendOptions options = calm();
  options.initial_delay = 3s;
  configure(options);
  const LocalTime began = now;
  EXPECT_FALSE(start().ask);
  EXPECT_EQ(machine->next_timer(), began + 3s);
  EXPECT_TRUE(let_timer_come().ask);
}

TEST_F(ContentionTest, AHintDoesNotShortenTheInitialDelay) {
  ContendOptions options = calm();
  options.initial_delay = 3s;
  configure(options);
  start();
  now += 1s;
  EXPECT_FALSE(wake().ask);
  EXPECT_EQ(machine->next_timer(), now + 2s);
}

TEST_F(ContentionTest, WhatOthersHeardDoesNotShortenTheInitialDelay) {
  ContendOptions options = calm();
  options.initial_delay = 3s;
  configure(options);
  start();
  EXPECT_FALSE(see(machine->overheard(owned_by("other~1"), now, now)).ask);
  EXPECT_EQ(machine->next_timer(), now + 3s);
}

// --- trying and waiting ---

TEST_F(ContentionTest, IsOwnerByItsOwnReplyAlone) {
  start();
  const Effects effects = answer(mine(42));
  EXPECT_TRUE(effects.began);
  EXPECT_EQ(machine->phase(), Phase::kHolding);
  ASSERT_TRUE(machine->term());
  EXPECT_EQ(machine->term()->token, 42U);
  ASSERT_TRUE(effects.change);
  EXPECT_TRUE(effects.change->is_acquired());
  EXPECT_EQ(effects.change->self, machine->wire_id());
}

TEST_F(ContentionTest, SomebodyElsesMutexIsWaitedForUntilItsTransitionEnds) {
  ContendOptions options = calm();
  options.safety_poll = 0ms;
  configure(options);
  start();
  const Effects effects = answer(owned_by("other~1"));
  EXPECT_EQ(machine->phase(), Phase::kTrying);
  ASSERT_TRUE(effects.change);
  EXPECT_EQ(effects.change->after.id, "other~1");
  EXPECT_FALSE(effects.change->is_acquired() || effects.change->is_released());
  EXPECT_EQ(machine->next_timer(), now + 16s);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
}

TEST_F(ContentionTest, ThePollsOfAWaiterKeepItsWireId) {
  wait_for_other();
  const std::string id = machine->wire_id();
  for (int i = 0; i < 5; ++i) {
    let_timer_come();
    EXPECT_EQ(machine->wire_id(), id);
    answer(owned_by("other~1", 7, 10s, 16s - 1s * i));
  }
  EXPECT_EQ(machine->wire_id(), id);
}

TEST_F(ContentionTest, WithoutPushAWaiterLooksEverySecond) {
  machine->set_pushed(false);
  wait_for_other();
  EXPECT_EQ(machine->next_timer(), now + 1s);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kObserve);
}

TEST_F(ContentionTest, WithPushAWaiterLooksEveryFiveSeconds) {
  machine->set_pushed(true);
  wait_for_other();
  EXPECT_EQ(machine->next_timer(), now + 5s);
}

TEST_F(ContentionTest, TheSafetyPollIsAnOption) {
  ContendOptions options = calm();
  options.safety_poll = 300ms;
  configure(options);
  wait_for_other();
  EXPECT_EQ(machine->next_timer(), now + 300ms);
}

TEST_F(ContentionTest, WithoutPushTheFirstPollsMayComeSooner) {
  ContendOptions options = calm();
  options.first_poll = 300ms;
  configure(options);
  wait_for_other();
  for (const milliseconds pause : {300ms, 600ms, 1000ms, 1000ms}) {
    EXPECT_EQ(machine->next_timer(), now + pause);
    machine->overheard(owned_by("other~1"), now, now);
    EXPECT_EQ(machine->next_timer(), now + pause)
        << "what others were told is no refusal of its own";
    let_timer_come();
    answer(owned_by("other~1"));
  }
}

TEST_F(ContentionTest, WithPushTheFirstPollIsNotHurried) {
  ContendOptions options = calm();
  options.first_poll = 300ms;
  configure(options);
  machine->set_pushed(true);
  wait_for_other();
  EXPECT_EQ(machine->next_timer(), now + 5s);
}

TEST_F(ContentionTest, EachAttemptBeginsWithTheFirstPoll) {
  ContendOptions options = calm();
  options.first_poll = 100ms;
  configure(options);
  wait_for_other();
  let_timer_come();
  answer(owned_by("other~1"));
  EXPECT_EQ(machine->next_timer(), now + 200ms);
  give_up();
  wait_for_other();
  EXPECT_EQ(machine->next_timer(), now + 100ms);
}

TEST_F(ContentionTest, WhereWaitersQueueInTheStoreThePollIsATake) {
  configure(calm(), Queue::kYes);
  wait_for_other();
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
}

TEST_F(ContentionTest, APollThatFindsItFreeIsFollowedByATake) {
  wait_for_other();
  let_timer_come();
  const Effects effects = answer(nobodys());
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kTake);
}

TEST_F(ContentionTest, ALeaseThatEndsBeforeTheNextPollIsAskedForAtItsEnd) {
  start();
  answer(owned_by("other~1", 7, 100ms, 300ms));
  EXPECT_EQ(machine->next_timer(), now + 300ms);
  ASSERT_TRUE(let_timer_come().ask);
  EXPECT_EQ(ask.kind, CallKind::kTake);
}

TEST_F(ContentionTest, ALeaseThatEndsThisVeryMomentIsAskedForOneMillisecondLater) {
  start();
  answer(owned_by("other~1", 7, 0ms, 0ms));
  EXPECT_EQ(machine->next_timer(), now + 1ms);
}

TEST_F(ContentionTest, TheJitterOfAWaiterStaysInItsRange) {
  ContendOptions options;
  options.safety_poll = 0ms;
  configure(options);
  start();
  nanoseconds smallest = 1h, largest = -1h;
  for (int i = 0; i < 5000; ++i) {
    answer(owned_by("other~1"));
    const nanoseconds jitter = machine->next_timer() - now - 16s;
    smallest = std::min(smallest, jitter);
    largest = std::max(largest, jitter);
    wake();
  }
  EXPECT_GE(smallest, -200ms);
  EXPECT_LT(smallest, -150ms);
  EXPECT_LT(largest, 1000ms);
  EXPECT_GT(largest, 950ms);
}

TEST_F(ContentionTest, WithoutATransitionNoWaiterComesEarly) {
  ContendOptions options;
  options.safety_poll = 0ms;
  configure(options);
  start();
  for (int i = 0; i < 1000; ++i) {
    answer(owned_by("other~1", 7, 16s, 16s));
    EXPECT_GE(machine->next_timer(), now + 16s);
    wake();
  }
}

TEST_F(ContentionTest, AnEvictedOwnersLeaseIsWaitedFor) {
  ContendOptions options = calm();
  options.safety_poll = 0ms;
  configure(options);
  start();
  answer(owned_by("", 7));
  EXPECT_EQ(machine->next_timer(), now + 16s);
}

TEST_F(ContentionTest, ALeaseWithoutAnEndInSightIsPolledInPeace) {
  start();
  Observation seen = owned_by("other~1");
  seen.owner.ttl_at = seen.owner.transition_at = StoreTime::max();
  answer(seen);
  EXPECT_EQ(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, AStoreThatNeitherGrantsNorNamesAnOwnerIsNotAskedInALoop) {
  start();
  const Effects effects = answer(nobodys());
  EXPECT_FALSE(effects.ask);
  EXPECT_GE(machine->next_timer(), now + 30ms);
  EXPECT_LE(machine->next_timer(), now + 625ms);
}

TEST_F(ContentionTest, AGrantWithoutATokenIsNoOwnership) {
  start();
  const Effects effects = answer(mine(0));
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(machine->term());
  EXPECT_FALSE(effects.change && effects.change->is_acquired());
}

// A statement that waited for a row lock can write a lease that is already over.
TEST_F(ContentionTest, ShedLock3577AGrantWhoseLeaseIsAlreadyOverIsNoOwnership) {
  start();
  Observation seen = mine();
  seen.owner.ttl_at = seen.now - 7s;
  seen.owner.transition_at = seen.now - 1s;
  const Effects effects = answer(seen);
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(machine->term());
  EXPECT_FALSE(effects.change && effects.change->is_acquired());
}

// --- R3: only my own reply ---

TEST_F(ContentionTest, WhatOthersHeardNeverMakesMeOwner) {
  start();
  fail();  // the take may have been performed
  const Effects effects = see(machine->overheard(mine(), now, now));
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(machine->term());
  EXPECT_FALSE(effects.change && effects.change->is_acquired());
  EXPECT_FALSE(machine->owner().is_owner(machine->wire_id()));
}

TEST_F(ContentionTest, AQuestionAnsweredWithMyOwnIdDoesNotMakeMeOwner) {
  wait_for_other();
  let_timer_come();
  ASSERT_EQ(ask.kind, CallKind::kObserve);
  const Effects effects = answer(mine());
  EXPECT_FALSE(effects.began);
  EXPECT_FALSE(effects.change && effects.change->is_acquired());
}

TEST_F(ContentionTest, AQuestionAnsweredWithMyOwnIdIsFollowedByATakeAtOnce) {
  wait_for_other();
  let_timer_come();
  const Effects effects = answer(mine());
  ASSERT_TRUE(effects.ask);
  EXPECT_EQ(effects.ask->kind, CallKind::kTake);
  EXPECT_TRUE(answer(mine()).began);
}

TEST_F(ContentionTest, Original02AWakeUpAloneIsNoOwnership) {
  wait_for_other();
  EXPECT_TRUE(wake().ask);
  EXPECT_FALSE(machine->term());
  answer(owned_by("other~1"));
  EXPECT_FALSE(machine->term());
}

TEST_F(ContentionTest, Original16ALateMessageFlipsNothingForTheOneWhoJustAcquired) {
  hold();
  const Effects effects = wake();
  EXPECT_FALSE(effects.ask);
  EXPECT_FALSE(effects.change);
  see(machine->overheard(owned_by("other~1"), now, now));
  EXPECT_EQ(machine->phase(), Phase::kHolding);
  EXPECT_TRUE(machine->owner().is_owner(machine->wire_id()));
}

TEST_F(ContentionTest, AnAnswerToANumberOfBeforeChangesNothing) {
  start();
  const std::uint64_t old = ask.number;
  const LocalTime old_sent = sent;
  let_call_hang();  // overdue
  let_timer_come();
  ASSERT_NE(ask.number, old);
  const Effects late = machine->answered(old, mine(), old_sent, now);
  EXPECT_FALSE(late.began);
  EXPECT_FALSE(machine->term());
  EXPECT_EQ(machine->failed(old, Errc::kDenied, now).ask, std::nullopt);
  EXPECT_TRUE(answer(mine()).began);
}

}  // namespace
}  // namespace simba::core
