#include "core/engine_fixture.h"

namespace simba::core {
namespace {

// --- acquiring ---

TEST_F(EngineTest, TakesAFreeMutexAtOnce) {
  Contender& leader = contend_as("leader", "report");
  EXPECT_TRUE(is_owner(leader));
  EXPECT_TRUE(is_in_ttl(leader));
  EXPECT_EQ(leader.told, Words{"acquired"});
  EXPECT_EQ(owner_of("report"), "leader");
  EXPECT_EQ(leader.term.token(), seen("report").owner.token);
  EXPECT_EQ(leader.term.time_left(), 14840ms);
  EXPECT_EQ(store->calls(), 1U);
}

TEST_F(EngineTest, TakesOverFromADeadOwnerWhenItsTransitionEnds) {
  take_as("dead~1", "report");  // and is never heard of again
  Contender& heir = contend_as("heir", "report");
  executor->advance(16s);  // ttl + transition; the heir's jitter is 0
  EXPECT_FALSE(is_owner(heir));
  executor->advance(1ms);
  EXPECT_TRUE(is_owner(heir));
  EXPECT_EQ(heir.told, (Words{"saw dead~1", "acquired"}));
}

TEST_F(EngineTest, TakesOverAsSoonAsAHintSaysThatItWasReleased) {
  take_as("other~1", "report");
  Contender& heir = contend_as("heir", "report");
  executor->advance(3s);
  release_as("other~1", "report");
  executor->run();
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, TakesOverWithinAPollWhenTheHintIsLost) {
  store->drop_hints();
  take_as("other~1", "report");
  Contender& heir = contend_as("heir", "report");
  executor->advance(1s);
  release_as("other~1", "report");
  executor->advance(4001ms);
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, WithoutPushAReleaseIsFoundWithinASecond) {
  store->cannot_push();
  take_as("other~1", "report");
  Contender& heir = contend_as("heir", "report");
  executor->advance(3500ms);
  release_as("other~1", "report");
  executor->advance(1s);
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, TokensGrowFromTermToTermAndStayAcrossRenewals) {
  Token last = 0;
  for (int i = 0; i < 5; ++i) {
    Contender& owner = contend_as("owner", "report");
    const Token token = owner.term.token();
    EXPECT_GT(token, last);
    last = token;
    executor->advance(1min);
    EXPECT_EQ(seen("report").owner.token, token);
    engine->stop(owner.who);
    executor->run();
  }
}

TEST_F(EngineTest, AClaimSaysWhichTokenWasTheHighestSeen) {
  take_as("other~1", "report");
  const Token highest = seen("report").owner.token;
  Contender& heir = contend_as("heir", "report");
  release_as("other~1", "report");
  executor->run();
  EXPECT_TRUE(is_owner(heir));
  EXPECT_EQ(store->asked().back().claims.front().floor, highest);
}

TEST_F(EngineTest, WhatWasSeenOfAMutexOutlivesTheLastHandleToIt) {
  const Token highest = contend_as("first", "report").term.token();
  engine->stop(contenders.front().who);
  executor->run();
  contenders.clear();
  for (int i = 0; i < 1'000; ++i) enroll("other", "order-" + std::to_string(i));
  contenders.clear();
  contend_as("second", "report");
  EXPECT_EQ(store->asked().back().claims.front().floor, highest);
}

TEST_F(EngineTest, RefusesNamesAndOptionsThatCannotWork) {
  Contender nobody;
  EXPECT_THROW(engine->enroll(spec_of(nobody, "me", "", calm())), Error);
  EXPECT_THROW(engine->enroll(spec_of(nobody, "", "report", calm())), Error);
  ContendOptions options = calm();
  options.ttl = 0ms;
  EXPECT_THROW(engine->enroll(spec_of(nobody, "me", "report", options)), Error);
}

// --- holding ---

TEST_F(EngineTest, AHealthyOwnerKeepsItsMutexAndNeverLeavesItsTtl) {
  Contender& leader = contend_as("leader", "report");
  for (int i = 0; i < 590; ++i) {
    executor->advance(100ms);
    ASSERT_TRUE(is_in_ttl(leader));
  }
  EXPECT_EQ(leader.told, Words{"acquired"});
  EXPECT_EQ(store->renewals(), 8U);  // every 6.667 s
  EXPECT_EQ(std::count(events.begin(), events.end(), Event::Kind::kRenewed), 8);
}

TEST_F(EngineTest, AThousandHeldMutexesAreRenewedInAFewCalls) {
  for (int i = 0; i < 1000; ++i) contend_as("leader", "report-" + std::to_string(i));
  store->forget();
  executor->advance(6700ms);
  std::size_t claims = 0;
  for (const Asked& asked : store->asked()) claims += asked.claims.size();
  EXPECT_EQ(claims, 1000U);
  EXPECT_LE(store->calls(), 3U);
  for (Contender& contender : contenders) EXPECT_TRUE(is_in_ttl(contender));
}

TEST_F(EngineTest, ABatchIsSortedAndHoldsEachMutexOnce) {
  executor->hold_calls();
  for (const char* mutex : {"x", "c", "a", "b", "a", "c"}) {
    engine->start(enroll("me", mutex).who);
  }
  executor->let_calls_go();
  for (const Asked& asked : store->asked()) {
    for (std::size_t i = 1; i < asked.claims.size(); ++i) {
      EXPECT_LT(asked.claims[i - 1].mutex, asked.claims[i].mutex);
    }
  }
}

TEST_F(EngineTest, OneBadClaimDoesNotHarmItsNeighbours) {
  for (const char* mutex : {"a", "b", "c"}) contend_as("leader", mutex);
  store->spoil("b", Error(Errc::kCorrupt, "a row that makes no sense"));
  executor->advance(30s);
  EXPECT_TRUE(is_in_ttl(contenders[0]));
  EXPECT_FALSE(is_owner(contenders[1]));
  EXPECT_TRUE(is_in_ttl(contenders[2]));
  EXPECT_EQ(contenders[0].told, Words{"acquired"});
  EXPECT_EQ(contenders[1].told, (Words{"acquired", "released"}));
}

TEST_F(EngineTest, OneClaimThatSpoilsTheWholeCallDoesNotHarmItsNeighbours) {
  for (int i = 0; i < 20; ++i) contend_as("leader", "m" + std::to_string(i));
  store->spoil_whole_call("m7", Error(Errc::kDenied, "not this one"));
  executor->advance(1min);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(is_in_ttl(contenders[i]), i != 7) << i;
    EXPECT_EQ(contenders[i].told.size(), i == 7 ? 2U : 1U) << i;
  }
}

TEST_F(EngineTest, ABlockedMutexIsAskedAloneAndItsNeighboursDoNotNotice) {
  for (const char* mutex : {"a", "b", "c"}) contend_as("leader", mutex);
  store->block("b");
  executor->advance(6700ms);  // the first renewal finds it blocked
  store->forget();
  executor->advance(30s);
  std::size_t alone = 0;
  for (const Asked& asked : store->asked()) {
    const bool has_b = std::any_of(asked.claims.begin(), asked.claims.end(),
                                   [](const auto& claim) { return claim.mutex == "b"; });
    if (!has_b) continue;
    EXPECT_EQ(asked.claims.size(), 1U);
    ++alone;
  }
  EXPECT_GT(alone, 1U);
  EXPECT_TRUE(is_in_ttl(contenders[0]) && is_in_ttl(contenders[2]));
  EXPECT_FALSE(is_owner(contenders[1]));
  store->unblock("b");
  executor->advance(40s);
  EXPECT_TRUE(is_owner(contenders[1]));
}

TEST_F(EngineTest, Redisson775RenewalGoesOnAfterAnError) {
  Contender& leader = contend_as("leader", "report");
  store->fail_before(kUnreachable, 2);
  executor->advance(9s);
  EXPECT_TRUE(is_in_ttl(leader));
  executor->advance(1min);
  EXPECT_TRUE(is_in_ttl(leader));
  EXPECT_EQ(leader.told, Words{"acquired"});
  EXPECT_EQ(std::count(events.begin(), events.end(), Event::Kind::kRenewalFailed), 2);
}

TEST_F(EngineTest, ARenewalWhoseAnswerWasLostIsRepeated) {
  Contender& leader = contend_as("leader", "report");
  store->fail_after(kLostAnswer);
  executor->advance(1min);
  EXPECT_TRUE(is_in_ttl(leader));
  EXPECT_EQ(leader.told, Words{"acquired"});
}

TEST_F(EngineTest, Original07WithoutAStoreTheTermEndsAtRevokeAtForTheReasonUnreachable) {
  Contender& leader = contend_as("leader", "report");
  store->go_down();
  executor->advance(14840ms - 1ns);
  EXPECT_TRUE(is_owner(leader));
  EXPECT_FALSE(is_in_ttl(leader));
  EXPECT_FALSE(leader.term.lost().stop_requested());
  executor->advance(1ns);
  EXPECT_FALSE(is_owner(leader));
  EXPECT_TRUE(leader.term.lost().stop_requested());
  EXPECT_EQ(loss(leader), LossReason::kUnreachable);
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
}

TEST_F(EngineTest, IsOwnerAndIsInTtlReadTheClockAtEveryQuestion) {
  Contender& leader = contend_as("leader", "report");
  executor->jump(10s);  // nothing runs
  EXPECT_FALSE(is_in_ttl(leader));
  EXPECT_TRUE(is_owner(leader));
  executor->jump(4840ms);
  EXPECT_FALSE(is_owner(leader));
  EXPECT_EQ(leader.term.time_left(), 0ns);
}

TEST_F(EngineTest, AfterStandingStillPastTheLeaseTheTermIsOver) {
  Contender& leader = contend_as("leader", "report");
  const Token token = leader.term.token();
  executor->jump(1h);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released", "acquired"}));
  EXPECT_GT(leader.term.token(), token);
}

TEST_F(EngineTest, LostIsRequestedInTimeWhileTheStoreCallHangs) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_calls();
  executor->advance(14840ms);
  EXPECT_TRUE(leader.term.lost().stop_requested());
  EXPECT_FALSE(is_owner(leader));
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
}

TEST_F(EngineTest, LostIsRequestedInTimeWhileACallbackHangs) {
  Contender& leader = enroll("leader", "report");
  leader.on_acquired = [&](const MutexState& state) {
    store->go_down();
    const LocalTime began = executor->now();
    while (!state.term.lost().stop_requested() && executor->now() < began + 1min)
      executor->advance(10ms);
    EXPECT_EQ(executor->now(), began + 14840ms);
    EXPECT_FALSE(state.term.is_owner());
  };
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
}

TEST_F(EngineTest, LostIsRequestedInTimeWhileCallbacksOfOthersHang) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_callbacks();
  store->go_down();
  executor->advance(14840ms);
  EXPECT_TRUE(leader.term.lost().stop_requested());
  EXPECT_EQ(leader.told, Words{"acquired"});
  executor->let_callbacks_go();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
}

// A user's executor may run the task where it stands. Nothing of ours may wait for that.
TEST_F(EngineTest, TheAlarmIsSetBeforeUserCodeRuns) {
  Contender& leader = contenders.emplace_back();
  Spec spec = spec_of(leader, "leader", "report", calm());
  spec.handle_executor = [](const std::function<void()>& task) { task(); };
  LocalTime alarm = LocalTime::max();
  leader.on_acquired = [&](const MutexState&) { alarm = executor->alarm(); };
  leader.who = engine->enroll(std::move(spec));
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, Words{"acquired"});
  EXPECT_LE(alarm, executor->now() + 6700ms)
      << "nobody would renew or revoke while on_acquired runs";
}

// It may wait for room in its queue: neither the alarm of others nor a caller waits with it.
TEST_F(EngineTest, TheUsersExecutorIsAskedOnAThreadOfCallbacks) {
  executor->hold_callbacks();
  Contender& leader = contenders.emplace_back();
  Spec spec = spec_of(leader, "leader", "report", calm());
  const auto asked = std::make_shared<int>(0);  // it is asked once more when all is stopped
  spec.handle_executor = [asked](const std::function<void()>& task) {
    ++*asked;
    task();
  };
  leader.who = engine->enroll(std::move(spec));
  engine->start(leader.who);
  executor->run();
  EXPECT_TRUE(is_owner(leader));
  EXPECT_EQ(*asked, 0);
  executor->let_callbacks_go();
  executor->run();
  EXPECT_EQ(*asked, 1);
  EXPECT_EQ(leader.told, Words{"acquired"});
}

TEST_F(EngineTest, AnEvictedOwnerHearsThatItWasForcedAndNobodyEntersEarly) {
  Contender& leader = contend_as("leader", "report");
  const LocalTime taken = executor->now();
  Contender& heir = contend_as("heir", "report");
  engine->stop(heir.who);
  executor->advance(1s);
  memory->evict("report", leader.term.wire_id(), leader.term.token(), Eviction::kKeepLease, {});
  executor->advance(5700ms);
  EXPECT_EQ(loss(leader), LossReason::kForced);
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  while (!is_owner(leader) && executor->now() < taken + 1min) executor->advance(1ms);
  EXPECT_GE(executor->now(), taken + 16s);
}

TEST_F(EngineTest, Redisson4698ALossIsReportedWithItsReason) {
  Contender& leader = contend_as("leader", "report");
  memory->evict("report", leader.term.wire_id(), leader.term.token(), Eviction::kFreeNow, {});
  take_as("usurper~1", "report");
  executor->advance(7s);
  EXPECT_EQ(loss(leader), LossReason::kSuperseded);
  EXPECT_EQ(leader.term.loss().superseded_by, "usurper~1");
}

TEST_F(EngineTest, RedlockRb36TheRenewalOfAnExpiredLeaseIsNotAccepted) {
  Contender& leader = contend_as("leader", "report");
  const Token token = leader.term.token();
  executor->hold_calls();
  executor->advance(6700ms);
  const auto renewal = only_call();
  renewal->send();
  executor->advance(10s);  // the lease is over in the store too
  renewal->complete();
  EXPECT_FALSE(seen("report").owner.token != token);  // it took nothing
  executor->let_calls_go();
  EXPECT_EQ(leader.told, (Words{"acquired", "released", "acquired"}));
  EXPECT_GT(leader.term.token(), token);
}

}  // namespace
}  // namespace simba::core
