#include "core/contention.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "simba/contender_id.h"
#include "testing/fake_executor.h"

namespace simba::core {
namespace {

using namespace std::chrono_literals;
using Phase = Contention::Phase;

constexpr milliseconds kStoreAhead{7'000'000};

ContendOptions calm() {
  ContendOptions options;
  options.jitter = {0ms, 0ms};
  return options;
}

// One contender, and the store's answers by hand.
class ContentionTest : public ::testing::Test {
 protected:
  enum class Queue { kNo, kYes };

  ContentionTest() { configure(calm()); }
  void configure(const ContendOptions& options, Queue queue = Queue::kNo,
                 std::string label = "me") {
    machine.emplace(std::move(label), std::make_shared<Rules>(options), queue == Queue::kYes,
                    executor);
  }

  // Every event goes through here, so that its ask is not overlooked.
  Effects see(Effects effects) {
    if (effects.ask) {
      EXPECT_FALSE(under_way) << "two calls at once";
      ask = *effects.ask;
      sent = now;
      under_way = true;
    }
    return effects;
  }
  Effects start(Goal goal = Goal::kKeep) { return see(machine->start(goal, now)); }
  Effects stop() { return see(machine->stop(now)); }
  Effects give_up() { return see(machine->give_up(now)); }
  Effects wake() { return see(machine->wake(now)); }
  Effects work_done() { return see(machine->work_done(machine->wire_id(), now)); }
  Effects answer(const Observation& seen) {
    under_way = false;
    return see(machine->answered(ask.number, seen, sent, now));
  }
  Effects fail(Errc code = Errc::kUnreachable) {
    under_way = false;
    return see(machine->failed(ask.number, code, now));
  }
  // The next thing that happens by itself.
  Effects let_timer_come() {
    const LocalTime at = machine->next_timer();
    EXPECT_NE(at, LocalTime::max()) << "nothing would ever happen again";
    if (at == LocalTime::max()) return {};
    now = std::max(now, at);
    return see(machine->timer(now));
  }
  // The call hangs in the driver until nobody waits for it any more.
  Effects let_call_hang() {
    under_way = false;
    return let_timer_come();
  }

  StoreTime store_now() const {
    return StoreTime{std::chrono::floor<milliseconds>(now.time_since_epoch()) + kStoreAhead};
  }
  Observation owned_by(std::string id, Token token = 7, milliseconds ttl = 10s,
                       milliseconds lease = 16s) const {
    const StoreTime at = store_now();
    return {{std::move(id), at, at + ttl, at + lease, token}, at};
  }
  Observation mine(Token token = 7) const { return owned_by(machine->wire_id(), token); }
  Observation nobodys() const { return {MutexOwner::none(), store_now()}; }

  Effects hold(Goal goal = Goal::kKeep) {
    start(goal);
    return answer(mine());
  }
  // In kTrying, with somebody else's lease known.
  void wait_for_other() {
    start();
    answer(owned_by("other~1"));
  }
  void end_term() {
    stop();
    work_done();
  }
  static std::vector<std::string> ids(const Effects& effects) {
    std::vector<std::string> out;
    for (const Retired& retired : effects.retired) out.push_back(retired.wire_id);
    return out;
  }
  using Ids = std::vector<std::string>;

  testing::FakeExecutor executor;
  std::optional<Contention> machine;
  LocalTime now{1h};
  Ask ask;
  LocalTime sent{};
  bool under_way = false;
};

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
  EXPECT_FALSE(see(machine->overheard(owned_by("other~1"), now)).ask);
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
  const Effects effects = see(machine->overheard(mine(), now));
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
  see(machine->overheard(owned_by("other~1"), now));
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
  EXPECT_FALSE(see(machine->overheard(owned_by("other~1"), now)).ask);
  EXPECT_EQ(machine->next_timer(), now + 1s);
}

TEST_F(ContentionTest, WhatOthersHeardEarlierThanIDidIsIgnored) {
  Observation old = owned_by("old~1");
  now += 1s;
  wait_for_other();
  EXPECT_FALSE(see(machine->overheard(old, now)).change);
  EXPECT_EQ(machine->owner().id, "other~1");
}

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

TEST_F(ContentionTest, AHungReleaseIsNotWaitedForForEver) {
  hold();
  end_term();
  const LocalTime overdue = now + 2500ms;  // its deadline twice over
  under_way = false;
  Effects effects;
  while (!effects.over && now < overdue) effects = let_timer_come();
  EXPECT_EQ(now, overdue);
  EXPECT_TRUE(effects.over);
  EXPECT_EQ(effects.retired.size(), 1U);
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

TEST_F(ContentionTest, AStopDuringACallThatHangsDoesNotHang) {
  start();
  stop();
  const Effects hung = let_call_hang();
  ASSERT_TRUE(hung.ask);
  EXPECT_EQ(hung.ask->kind, CallKind::kRelease);
  EXPECT_TRUE(let_call_hang().over);
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
  EXPECT_FALSE(machine->overheard(mine(), now).change);
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
  const Effects effects = see(machine->overheard(owned_by("a~1"), now));
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

}  // namespace
}  // namespace simba::core
