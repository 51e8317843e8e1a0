#include "core/engine_fixture.h"

namespace simba::core {
namespace {

// --- what is told ---

TEST_F(EngineTest, Original01AcquiredAndReleasedStrictlyAlternate) {
  Contender& leader = contend_as("leader", "report");
  for (int i = 0; i < 20; ++i) {
    store->go_down();
    executor->advance(20s);
    store->heal();
    executor->advance(20s);
  }
  ASSERT_EQ(leader.told.size(), 41U);
  for (std::size_t i = 0; i < leader.told.size(); ++i) {
    EXPECT_EQ(leader.told[i], i % 2 == 0 ? "acquired" : "released") << i;
  }
}

TEST_F(EngineTest, ATermThatEndedBeforeItWasToldIsNotToldAtAll) {
  executor->hold_callbacks();
  Contender& leader = contend_as("leader", "report");
  EXPECT_TRUE(is_owner(leader));
  store->go_down();
  executor->advance(20s);
  EXPECT_FALSE(is_owner(leader));
  executor->let_callbacks_go();
  EXPECT_TRUE(leader.told.empty());
  store->heal();
  executor->advance(20s);
  EXPECT_EQ(leader.told, Words{"acquired"});  // and its work counted as done
}

TEST_F(EngineTest, WhoeverWasToldNoIsNotToldYesByARenewalThatWasShownLate) {
  Contender& owner = contend_as("owner", "report");
  const Term term = owner.term;
  executor->hold_calls();
  executor->advance(7s);
  const auto renewal = only_call();
  renewal->perform();
  bool heard = true;
  executor->after_next_look([&] {
    executor->jump(1min);
    heard = term.is_owner();
  });
  renewal->complete();
  EXPECT_FALSE(heard);
  EXPECT_FALSE(term.is_owner()) << "a term that ended is dead";
  EXPECT_FALSE(term.is_in_ttl());
  EXPECT_EQ(term.time_left(), 0ns);
  EXPECT_EQ(term.loss().reason, LossReason::kExpired);
  executor->let_calls_go();
  EXPECT_EQ(owner.told.at(1), "released");
  EXPECT_GT(owner.term.token(), term.token()) << "it has a term of its own again";
}

TEST_F(EngineTest, TheEndOfATermIsToldWhenItsBeginningHasReturned) {
  Contender& leader = enroll("leader", "report");
  leader.on_acquired = [&](const MutexState&) {
    store->go_down();
    executor->advance(20s);
    EXPECT_EQ(leader.told, Words{"acquired"});
  };
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
}

TEST_F(EngineTest, Original08NoErrorOfTheStoreEndsTheLoop) {
  for (const Errc code : {Errc::kUnreachable, Errc::kDenied, Errc::kTimeout, Errc::kMisconfigured,
                          Errc::kCorrupt, Errc::kReplaced}) {
    store->fail_before(Error(code, "trouble"), 3);
  }
  Contender& leader = contend_as("leader", "report");
  executor->advance(20s);
  EXPECT_TRUE(is_owner(leader));
}

TEST_F(EngineTest, AContenderCanBeStoppedFromItsOwnCallback) {
  Contender& leader = enroll("leader", "report");
  leader.on_acquired = [&](const MutexState&) { engine->stop(leader.who); };
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  EXPECT_EQ(phase(leader), Phase::kIdle);
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, AnObserverSeesOwnersComeAndGoWithoutContending) {
  Contender& observer = observe("report");
  take_as("a~1", "report");
  executor->advance(5s);
  release_as("a~1", "report");
  executor->run();
  take_as("b~1", "report");
  store->hint("report");
  executor->run();
  EXPECT_EQ(observer.told, (Words{"saw a~1", "saw ", "saw b~1"}));
  EXPECT_EQ(store->takes(), 0U);
}

TEST_F(EngineTest, AnObserverHearsOfALocalOwnerWithoutAskingItself) {
  Contender& observer = observe("report");
  store->forget();
  contend_as("leader", "report");
  EXPECT_EQ(observer.told, Words{"saw leader"});
  EXPECT_EQ(store->questions(), 0U);
}

TEST_F(EngineTest, AnObserverIsToldThatADeadOwnersLeaseHasEnded) {
  take_as("dead~1", "report");
  Contender& observer = observe("report");
  executor->advance(20s);
  EXPECT_EQ(observer.told, (Words{"saw dead~1", "saw "}));
}

// --- the end ---

TEST_F(EngineTest, AStopReleasesAndLetsTheNextOneIn) {
  Contender& first = contend_as("first", "report");
  Contender& second = contend_as("second", "report");
  EXPECT_FALSE(is_owner(second));
  engine->stop(first.who);
  executor->run();
  EXPECT_EQ(first.told, (Words{"acquired", "released"}));
  EXPECT_EQ(loss(first), LossReason::kReleased);
  EXPECT_TRUE(is_owner(second));  // no time has passed
  EXPECT_EQ(phase(first), Phase::kIdle);
}

TEST_F(EngineTest, Original11TheStoreIsToldOnlyAfterTheWorkHasReturned) {
  Contender& leader = enroll("leader", "report");
  Contender& heir = enroll("heir", "report");
  leader.on_released = [&](const MutexState& state) {
    EXPECT_TRUE(state.term.lost().stop_requested());
    executor->advance(900ms);
    EXPECT_EQ(owner_of("report"), "leader");
    EXPECT_FALSE(is_owner(heir));
    EXPECT_EQ(store->releases(), 0U);
  };
  engine->start(leader.who);
  executor->run();
  engine->start(heir.who);
  executor->run();
  engine->stop(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, ClientGo728TheLeaseIsRenewedWhileTheWorkReturns) {
  ContendOptions options = calm();
  options.transition = 60s;
  options.grace = 30s;
  Contender& leader = enroll("leader", "report", options);
  leader.on_released = [&](const MutexState&) {
    executor->advance(25s);
    EXPECT_EQ(owner_of("report"), "leader");
  };
  engine->start(leader.who);
  executor->run();
  store->forget();
  engine->stop(leader.who);
  executor->run();
  EXPECT_GE(store->renewals(), 3U);
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, WorkThatOutlivesItsGraceKeepsTheMutexUntilTheLeaseRunsOut) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_callbacks();
  engine->stop(leader.who);
  executor->advance(1001ms);
  EXPECT_EQ(phase(leader), Phase::kIdle);
  EXPECT_EQ(loss(leader), LossReason::kAbandoned);
  EXPECT_EQ(owner_of("report"), "leader");
  executor->let_callbacks_go();
  EXPECT_EQ(owner_of("report"), "leader");
  EXPECT_EQ(store->releases(), 0U);
  store->forget();
  executor->advance(20s);
  EXPECT_EQ(store->renewals(), 0U);
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, AStopWithoutATransitionReleasesToo) {
  ContendOptions options = calm();
  options.transition = 0ms;
  Contender& leader = contend_as("leader", "report", options);
  engine->stop(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, Redisson1966RenewalStopsWithTheTerm) {
  Contender& leader = contend_as("leader", "report");
  engine->stop(leader.who);
  executor->run();
  store->forget();
  executor->advance(1h);
  EXPECT_EQ(store->calls(), 0U);
  EXPECT_EQ(store->watches(), 0U);
}

TEST_F(EngineTest, Original04AnAcquisitionThatCompletesAfterStopIsGivenBack) {
  executor->hold_calls();
  Contender& leader = contend_as("leader", "report");
  const auto take = only_call();
  take->perform();
  EXPECT_EQ(owner_of("report"), "leader");
  engine->stop(leader.who);
  take->complete();
  executor->let_calls_go();
  EXPECT_EQ(owner_of("report"), "");
  EXPECT_TRUE(leader.told.empty());
  EXPECT_EQ(phase(leader), Phase::kIdle);
}

TEST_F(EngineTest, Original05ALateAcquisitionOfAnEarlierLifeIsGivenBackAndTheNextLifeKeepsItsOwn) {
  executor->hold_calls();
  Contender& locker = contend_as("locker", "report");
  const auto old_take = only_call();
  engine->give_up(locker.who);
  engine->start(locker.who);
  old_take->perform();
  old_take->complete();
  executor->let_calls_go();
  executor->advance(5s);
  EXPECT_TRUE(is_owner(locker));
  EXPECT_EQ(locker.told.back(), "acquired");
  executor->advance(1min);
  EXPECT_TRUE(is_in_ttl(locker));
  EXPECT_EQ(seen("report").owner.id, locker.term.wire_id());
}

TEST_F(EngineTest, Original12AStopEndsTheNewestCallAndTimerToo) {
  take_as("other~1", "report");
  Contender& waiter = contend_as("waiter", "report");
  for (int i = 0; i < 5; ++i) store->hint("report");
  executor->run();
  engine->stop(waiter.who);
  executor->run();
  store->forget();
  executor->advance(1h);
  EXPECT_EQ(store->calls(), 0U);
}

TEST_F(EngineTest, Original06HintsDoNotMultiplyTheTimers) {
  take_as("other~1", "report", 1h, 0s);
  store->cannot_push();
  contend_as("waiter", "report");
  for (int i = 0; i < 20; ++i) {
    store->hint("report");
    executor->advance(10ms);
  }
  store->forget();
  executor->advance(10s);
  EXPECT_LE(store->calls(), 10U);
}

TEST_F(EngineTest, Original03AGivenUpAttemptIsNeitherContinuedNorRenewed) {
  Contender& lock = enroll_lock("report");
  take_as("other~1", "report");
  engine->start(lock.who);
  executor->advance(2s);
  engine->give_up(lock.who);
  store->forget();
  executor->advance(1h);
  EXPECT_EQ(store->calls(), 0U);
  EXPECT_EQ(owner_of("report"), "");
  engine->start(lock.who);
  executor->run();
  EXPECT_TRUE(is_owner(lock));
}

TEST_F(EngineTest, AReleaseThatFailsIsRepeatedInTheBackground) {
  Contender& leader = contend_as("leader", "report");
  store->fail_before(kUnreachable, 3);
  engine->stop(leader.who);
  executor->run();
  EXPECT_EQ(phase(leader), Phase::kIdle);
  EXPECT_EQ(owner_of("report"), "leader");
  executor->advance(3s);
  EXPECT_EQ(owner_of("report"), "");
}

// Design: call deadline and grace, 2.25 s here. What was under way is still given back.
TEST_F(EngineTest, AStopWhoseCallsHangIsOverInItsTimeAndStillReleases) {
  executor->hold_calls();
  Contender& hanging = contend_as("hanging", "report");
  const auto take = only_call();
  take->perform();
  EXPECT_EQ(owner_of("report"), "hanging");
  engine->stop(hanging.who);
  executor->advance(2249ms);
  EXPECT_NE(phase(hanging), Phase::kIdle);
  executor->advance(1ms);
  EXPECT_EQ(phase(hanging), Phase::kIdle);
  take->complete();
  EXPECT_FALSE(is_owner(hanging)) << "a late grant is never adopted";
  executor->let_calls_go();
  EXPECT_EQ(owner_of("report"), "");
  EXPECT_EQ(hanging.told, Words{});
}

TEST_F(EngineTest, AStopAgainstAStoreThatIsGoneComesToAnEnd) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_calls();
  engine->stop(leader.who);
  executor->advance(5s);
  EXPECT_EQ(phase(leader), Phase::kIdle);
}

}  // namespace
}  // namespace simba::core
