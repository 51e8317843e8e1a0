#include "core/engine_fixture.h"

namespace simba::core {
namespace {

// --- several in one process ---

TEST_F(EngineTest, LocalWaitersFollowOneAnotherInTheOrderOfTheirArrival) {
  for (const char* label : {"a", "b", "c", "d"}) {
    contend_as(label, "report");
    executor->advance(10ms);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(is_owner(contenders[j]), i == j) << i << j;
    engine->stop(contenders[i].who);
    executor->run();
  }
}

TEST_F(EngineTest, AWaiterThatLeavesTheLinePassesTheHintOn) {
  take_as("other~1", "report");
  Contender& first = contend_as("first", "report");
  Contender& second = contend_as("second", "report");
  executor->hold_calls();
  release_as("other~1", "report");  // wakes the first
  engine->stop(first.who);
  executor->let_calls_go();
  EXPECT_TRUE(is_owner(second));
}

TEST_F(EngineTest, AContenderInItsInitialDelayDoesNotSwallowTheHintsOfOthers) {
  take_as("other~1", "report");
  ContendOptions options = calm();
  options.initial_delay = 1h;
  Contender& sleeper = contend_as("sleeper", "report", options);
  Contender& waiter = contend_as("waiter", "report");
  executor->advance(1s);
  release_as("other~1", "report");
  executor->run();
  EXPECT_TRUE(is_owner(waiter));
  EXPECT_FALSE(is_owner(sleeper));
}

TEST_F(EngineTest, OnePollServesAllWhoWaitForAMutexInThisProcess) {
  store->cannot_push();
  take_as("other~1", "report", 1h, 0s);
  for (int i = 0; i < 50; ++i) contend_as("waiter", "report");
  store->forget();
  executor->advance(10s);
  EXPECT_LE(store->calls(), 10U);
  EXPECT_GE(store->calls(), 9U);
}

TEST_F(EngineTest, TheWorkOfAPollGrowsWithTheWaitersNotWithTheirSquare) {
  store->cannot_push();
  take_as("other~1", "report", 1h, 0s);
  for (int i = 0; i < 200; ++i) contend_as("waiter", "report");
  executor->advance(5s);
  const std::uint64_t before = executor->drawn();
  executor->advance(1s);
  EXPECT_LE(executor->drawn() - before, 5 * 200U);
}

TEST_F(EngineTest, TwoContendersWithOneLabelAreTwo) {
  Contender& first = contend_as("twin", "report");
  Contender& second = contend_as("twin", "report");
  executor->advance(1min);
  EXPECT_TRUE(is_owner(first));
  EXPECT_FALSE(is_owner(second));
  engine->stop(second.who);
  executor->run();
  EXPECT_TRUE(is_owner(first));
  EXPECT_EQ(owner_of("report"), "twin");
  engine->start(second.who);
  executor->run();
  engine->stop(first.who);
  executor->run();
  EXPECT_TRUE(is_owner(second));
}

TEST_F(EngineTest, ATwinInAnotherProcessIsSomebodyElse) {
  take_as("twin~0000000000000", "report");
  Contender& twin = contend_as("twin", "report");
  EXPECT_FALSE(is_owner(twin));
  engine->stop(twin.who);
  executor->run();
  EXPECT_EQ(seen("report").owner.id, "twin~0000000000000");
}

TEST_F(EngineTest, Original16AForgedHintChangesNothing) {
  Contender& leader = contend_as("leader", "report");
  Contender& waiter = contend_as("waiter", "report");
  for (int i = 0; i < 100; ++i) {
    store->hint("report");
    executor->advance(1ms);
  }
  EXPECT_TRUE(is_in_ttl(leader));
  EXPECT_FALSE(is_owner(waiter));
  EXPECT_EQ(leader.told, Words{"acquired"});
  EXPECT_EQ(waiter.told, Words{"saw leader"});
}

TEST_F(EngineTest, AHintThatArrivesDuringACallIsNotLost) {
  take_as("other~1", "report");
  Contender& waiter = contend_as("waiter", "report");
  executor->hold_calls();
  store->hint("report");
  const auto take = only_call();
  take->perform();                  // still the other's
  release_as("other~1", "report");  // the hint comes while the answer is on its way
  take->complete();
  executor->let_calls_go();
  EXPECT_TRUE(is_owner(waiter));
}

TEST_F(EngineTest, TheMaximumHoldTimeLetsOthersHaveATurn) {
  ContendOptions options = calm();
  options.jitter = {0ms, 100ms};
  options.max_hold = 5s;
  Contender& first = contend_as("first", "report", options);
  Contender& second = contend_as("second", "report", options);
  executor->advance(5s);
  EXPECT_FALSE(is_owner(first));
  EXPECT_TRUE(is_owner(second));
  executor->advance(5s);
  EXPECT_TRUE(is_owner(first));
  EXPECT_FALSE(is_owner(second));
}

TEST_F(EngineTest, AfterTheMaximumHoldTimeOtherProcessesHaveATurnToo) {
  ContendOptions options = calm();
  options.jitter = {0ms, 500ms};
  options.max_hold = 5s;
  Contender& leader = contend_as("leader", "report", options);
  executor->advance(5s);
  EXPECT_EQ(owner_of("report"), "") << "it took the mutex again before anybody else could";
  executor->advance(400ms);
  EXPECT_EQ(owner_of("report"), "");
  executor->advance(200ms);
  EXPECT_TRUE(is_owner(leader));
}

TEST_F(EngineTest, AMutexThatAPollFindsFreeIsTakenByOneOfThoseWhoWait) {
  store->cannot_push();
  take_as("other~1", "report");
  for (int i = 0; i < 50; ++i) contend_as("waiter", "report");
  release_as("other~1", "report");
  store->forget();
  executor->advance(1001ms);
  EXPECT_EQ(owner_of("report"), "waiter");
  EXPECT_EQ(store->questions(), 1U);
  EXPECT_LE(store->takes(), 2U);
}

TEST_F(EngineTest, AStopDuringASharedPollIsOverWithItsAnswer) {
  store->cannot_push();
  take_as("other~1", "report");
  contend_as("first", "report");
  Contender& second = contend_as("second", "report");
  executor->hold_calls();
  executor->advance(1100ms);
  const auto poll = only_call();  // of both
  release_as("other~1", "report");
  engine->stop(second.who);
  poll->complete();
  executor->let_calls_go();
  EXPECT_EQ(phase(second), Phase::kIdle);
}

TEST_F(EngineTest, ASharedPollOfAnEarlierLifeHoldsUpTheNextNoLongerThanItsAnswer) {
  store->cannot_push();
  take_as("other~1", "report");
  contend_as("first", "report");
  Contender& second = contend_as("second", "report");
  executor->hold_calls();
  executor->advance(1100ms);
  const auto poll = only_call();
  release_as("other~1", "report");
  engine->give_up(second.who);
  engine->start(second.who);
  poll->complete();
  executor->let_calls_go();
  EXPECT_TRUE(engine->snapshot(*second.who).has_answer);
}

// --- on the caller's own thread ---

TEST_F(EngineTest, AFreeLockCostsOneCallAndItsReleaseAnother) {
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 1s);
  EXPECT_TRUE(is_owner(lock));  // nothing of the executor ran
  EXPECT_EQ(store->calls(), 1U);
  engine->finish_inline(lock.who);
  EXPECT_FALSE(is_owner(lock));
  EXPECT_EQ(owner_of("report"), "");
  EXPECT_EQ(store->calls(), 2U);
  EXPECT_EQ(phase(lock), Phase::kIdle);
}

TEST_F(EngineTest, ALockWithoutATransitionIsReleasedByItsUser) {
  ContendOptions options = calm();
  options.transition = 0ms;
  Contender& lock = enroll_lock("report", options);
  engine->start_inline(lock.who, executor->now() + 1s);
  engine->finish_inline(lock.who);
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, ALockThatIsTakenIsWaitedFor) {
  take_as("other~1", "report");
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 1s);
  Engine::OwnCalls calls(*engine, lock.who);
  make_all(calls);
  EXPECT_FALSE(is_owner(lock));
  release_as("other~1", "report");
  make_all(calls);
  EXPECT_TRUE(is_owner(lock));
  EXPECT_GE(lock.pokes, 1);
}

TEST_F(EngineTest, TheDeadlineOfTheCallerBoundsItsCall) {
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 70ms);
  EXPECT_EQ(store->asked().front().deadline, executor->now() + 70ms);
}

TEST_F(EngineTest, AnAmbiguousTryIsGivenBackInTheBackground) {
  store->fail_after(kLostAnswer);
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 1s);
  EXPECT_FALSE(is_owner(lock));
  EXPECT_EQ(owner_of("report"), "lock");
  engine->give_up(lock.who);
  executor->run();
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, AReleaseByItsUserThatFailsIsRepeatedInTheBackground) {
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 1s);
  store->fail_before(kUnreachable, 2);
  engine->finish_inline(lock.who);
  EXPECT_EQ(owner_of("report"), "lock");
  executor->advance(3s);
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, ALockThatWasLostIsFinishedWithoutTouchingTheNextOwner) {
  Contender& lock = enroll_lock("report");
  engine->start_inline(lock.who, executor->now() + 1s);
  store->go_down();
  executor->advance(17s);
  store->heal();
  take_as("next~1", "report");
  engine->finish_inline(lock.who);
  executor->advance(5s);
  EXPECT_EQ(owner_of("report"), "next~1");
  EXPECT_EQ(phase(lock), Phase::kIdle);
}

TEST_F(EngineTest, ANewLockStandsInLineBehindThoseWhoWait) {
  Contender& holder = enroll_lock("report");
  engine->start_inline(holder.who, executor->now() + 1s);
  Contender& waiter = contend_as("waiter", "report");
  Contender& late = enroll_lock("report");
  engine->start_inline(late.who, executor->now() + 1s);
  Engine::OwnCalls calls(*engine, late.who);
  make_all(calls);
  engine->finish_inline(holder.who);
  make_all(calls);
  EXPECT_TRUE(is_owner(waiter));
  EXPECT_FALSE(is_owner(late));
}

// --- stores that queue ---

TEST_F(EngineTest, WhereWaitersQueueEachWatchesUnderItsOwnId) {
  store->set_traits({"queue", 66, 128, true});
  take_as("other~1", "report");
  contend_as("a", "report");
  contend_as("b", "report");
  EXPECT_EQ(store->watches(), 2U);
  release_as("other~1", "report");
  executor->run();
  EXPECT_TRUE(is_owner(contenders[0]) || is_owner(contenders[1]));
}

TEST_F(EngineTest, WhereWaitersQueueWhoGivesUpLeavesTheQueue) {
  store->set_traits({"queue", 66, 128, true});
  take_as("other~1", "report");
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  executor->run();
  const std::string id = lock.who->machine.wire_id();
  engine->give_up(lock.who);
  executor->run();
  ASSERT_EQ(store->releases(), 1U) << "its place in the queue stays behind";
  EXPECT_EQ(store->asked().back().claims.front().wire_id, id);
}

TEST_F(EngineTest, AHintMayFindAnObserverWhoseEndIsDue) {
  executor->hold_calls();
  Contender& leaves = observe("report");
  Contender& stays = observe("report");
  engine->stop(leaves.who);
  executor->jump(1min);  // its question hangs, and no alarm has come since
  store->hint("report");
  EXPECT_EQ(phase(leaves), Phase::kIdle);
  EXPECT_EQ(phase(stays), Phase::kTrying);
}

TEST_F(EngineTest, AnObserverThatIsStartedAgainKnowsNothingOfItsLastLife) {
  take_as("other~1", "report");
  Contender& observer = observe("report");
  EXPECT_EQ(engine->state(*observer.who).after.id, "other~1");
  engine->stop(observer.who);
  executor->run();
  release_as("other~1", "report");
  engine->start(observer.who);
  executor->advance(1s);
  EXPECT_EQ(engine->state(*observer.who).after.id, "");
}

}  // namespace
}  // namespace simba::core
