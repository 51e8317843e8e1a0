#include "core/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "simba/contender_id.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

namespace simba::core {
namespace {

using namespace std::chrono_literals;
using Phase = Contention::Phase;
using testing::Asked;
using testing::FakeExecutor;
using testing::FaultyStore;
using testing::HeldCall;
using Words = std::vector<std::string>;

const Error kUnreachable(Errc::kUnreachable, "no route");
const Error kLostAnswer(Errc::kTimeout, "lost answer");

ContendOptions calm() {
  ContendOptions options;
  options.jitter = {0ms, 0ms};
  return options;
}

// A contender and what it was told.
struct Contender {
  std::shared_ptr<Enrolled> who;
  Words told;  // "acquired", "released", "saw LABEL"
  Term term;   // of the last on_acquired
  std::function<void(const MutexState&)> on_acquired, on_released;
  int pokes = 0;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() { engine->open(); }
  void TearDown() override {
    executor->let_calls_go();
    executor->let_callbacks_go();
    store->heal();
    for (Contender& contender : contenders) engine->stop(contender.who);
    executor->advance(1min);
    for (Contender& contender : contenders) {
      EXPECT_EQ(phase(contender), Phase::kIdle) << "it does not come to an end";
    }
    engine->close(0ns);
  }

  Spec spec_of(Contender& contender, std::string label, std::string mutex, ContendOptions options) {
    Spec spec;
    spec.mutex = std::move(mutex);
    spec.label = std::move(label);
    spec.options = options;
    spec.notify = [this, &contender](const MutexState& state) { tell(contender, state); };
    spec.poke = [&contender] { ++contender.pokes; };
    return spec;
  }
  void tell(Contender& contender, const MutexState& state) {
    if (state.is_acquired()) {
      contender.told.emplace_back("acquired");
      contender.term = state.term;
      if (contender.on_acquired) contender.on_acquired(state);
    } else if (state.is_released()) {
      if (contender.on_released) contender.on_released(state);
      contender.told.emplace_back("released");
    } else {
      contender.told.push_back("saw " + std::string(label_of(state.after.id)));
    }
  }
  Contender& enroll(std::string label, std::string mutex, ContendOptions options = calm()) {
    Contender& contender = contenders.emplace_back();
    contender.who = engine->enroll(spec_of(contender, std::move(label), std::move(mutex), options));
    return contender;
  }
  Contender& contend_as(std::string label, std::string mutex, ContendOptions options = calm()) {
    Contender& contender = enroll(std::move(label), std::move(mutex), options);
    engine->start(contender.who);
    executor->run();
    return contender;
  }
  Contender& observe(std::string mutex) {
    Contender& contender = contenders.emplace_back();
    Spec spec = spec_of(contender, "", std::move(mutex), calm());
    spec.goal = Goal::kObserve;
    contender.who = engine->enroll(std::move(spec));
    engine->start(contender.who);
    executor->run();
    return contender;
  }
  // A lock: nobody is told, its user says when the work is done.
  Contender& enroll_lock(std::string mutex, ContendOptions options = calm()) {
    Contender& contender = contenders.emplace_back();
    Spec spec = spec_of(contender, "lock", std::move(mutex), options);
    spec.goal = Goal::kOnce;
    spec.notify = {};
    contender.who = engine->enroll(std::move(spec));
    return contender;
  }

  Phase phase(const Contender& contender) const { return engine->snapshot(*contender.who).phase; }
  bool is_owner(const Contender& contender) const {
    const auto term = engine->snapshot(*contender.who).term;
    return term && term->is_owner();
  }
  bool is_in_ttl(const Contender& contender) const {
    const auto term = engine->snapshot(*contender.who).term;
    return term && term->is_in_ttl();
  }
  LossReason loss(const Contender& contender) const {
    return engine->snapshot(*contender.who).term->loss().reason;
  }

  // Another process, straight at the store.
  Observation take_as(const std::string& id, const std::string& mutex, milliseconds ttl = 10s,
                      milliseconds transition = 6s) {
    const Claim claim{mutex, id, 0, 0, ttl, transition};
    return std::get<Observation>(memory->contend({&claim, 1}, {}).at(0));
  }
  void release_as(const std::string& id, const std::string& mutex) {
    const Claim claim{mutex, id};
    memory->release({&claim, 1}, {});
  }
  Observation seen(const std::string& mutex) {
    const std::string_view name = mutex;
    return std::get<Observation>(memory->observe({&name, 1}, {}).at(0));
  }
  std::string owner_of(const std::string& mutex) {
    const Observation observation = seen(mutex);
    return observation.is_free() ? "" : std::string(label_of(observation.owner.id));
  }
  std::shared_ptr<HeldCall> only_call() {
    const auto calls = executor->pending_calls();
    EXPECT_EQ(calls.size(), 1U);
    return calls.empty() ? nullptr : calls.front();
  }

  std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  std::shared_ptr<Store> memory = make_memory(executor->store_clock());
  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(memory);
  std::vector<Event::Kind> events;
  std::shared_ptr<Engine> engine =
      std::make_shared<Engine>(store, executor, [this](const Event& event) {
        if (event.kind != Event::Kind::kCalled) events.push_back(event.kind);
      });
  std::deque<Contender> contenders;
};

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

TEST_F(EngineTest, AStopAgainstAStoreThatIsGoneComesToAnEnd) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_calls();
  engine->stop(leader.who);
  executor->advance(5s);
  EXPECT_EQ(phase(leader), Phase::kIdle);
}

// --- ambiguity ---

TEST_F(EngineTest, AnAmbiguousTakeIsRepeatedAndGrantedOnce) {
  store->fail_after(kLostAnswer);
  Contender& leader = contend_as("leader", "report");
  EXPECT_FALSE(is_owner(leader));
  EXPECT_EQ(owner_of("report"), "leader");
  const Token token = seen("report").owner.token;
  executor->advance(1s);
  EXPECT_TRUE(is_owner(leader));
  EXPECT_EQ(leader.term.token(), token);
  EXPECT_EQ(leader.told, Words{"acquired"});
}

TEST_F(EngineTest, AnAmbiguousTakeThatIsGivenUpIsGivenBack) {
  store->fail_after(kLostAnswer);
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  executor->run();
  EXPECT_EQ(owner_of("report"), "lock");
  engine->give_up(lock.who);
  executor->run();
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, WhatANeighbourSeesOfMyAmbiguousTakeDoesNotMakeMeOwner) {
  take_as("other~1", "report", 1s, 1s);
  Contender& first = contend_as("first", "report");
  Contender& second = contend_as("second", "report");
  executor->hold_calls();
  release_as("other~1", "report");
  executor->run();
  const auto take = only_call();  // of the first
  take->perform();
  take->lose();
  take->complete();
  Contender& third = contend_as("third", "report");
  for (const auto& call : executor->pending_calls()) call->complete();
  EXPECT_TRUE(std::count(first.told.begin(), first.told.end(), "acquired") == is_owner(first));
  executor->let_calls_go();
  executor->advance(2s);
  EXPECT_TRUE(is_owner(first));
  EXPECT_EQ(std::count(first.told.begin(), first.told.end(), "acquired"), 1);
  EXPECT_FALSE(is_owner(second) || is_owner(third));
}

TEST_F(EngineTest, OneRefusalServesAllWhoWereNotSentYet) {
  take_as("other~1", "report");
  executor->hold_calls();
  for (int i = 0; i < 100; ++i) contend_as("waiter", "report");
  executor->let_calls_go();
  executor->run();
  EXPECT_EQ(store->calls(), 2U);  // the one under way, and the next in line
  for (const Contender& waiter : contenders) {
    ASSERT_EQ(waiter.told, Words{"saw other~1"});
    EXPECT_TRUE(engine->snapshot(*waiter.who).has_answer);
  }
  release_as("other~1", "report");
  executor->run();
  EXPECT_EQ(owner_of("report"), "waiter");
}

// Else an attempt could be told that it owns by the answer to another one's question.
TEST_F(EngineTest, WhomTheAnswerNamesHasToHearItItself) {
  executor->hold_calls();
  Contender& first = contend_as("first", "report");
  const auto lost = only_call();
  lost->lose();
  lost->complete();
  take_as(first.who->machine.wire_id(), "report");  // it arrived
  for (int i = 0; i < 5; ++i) contend_as("other", "report");
  executor->advance(12ms);  // four calls at once, and one that waits for its turn
  const auto calls = executor->pending_calls();
  ASSERT_EQ(calls.size(), 4U);
  executor->advance(80ms);  // the first asks again, in line behind the fifth
  calls.front()->perform();
  calls.front()->complete();
  EXPECT_FALSE(is_owner(first));
  executor->let_calls_go();
  executor->advance(2s);
  EXPECT_TRUE(is_owner(first));
  EXPECT_EQ(first.told, Words{"acquired"});
}

TEST_F(EngineTest, AThreadThatWaitsMakesItsOwnClaims) {
  take_as("other~1", "report");
  Contender& lock = enroll_lock("report");
  Engine::OwnCalls calls(*engine, lock.who);
  EXPECT_EQ(engine->start_inline(lock.who, LocalTime::max()), Engine::Inline::kOpen);
  EXPECT_TRUE(calls.make(LocalTime::max()));  // what changed before hints came is asked for again
  executor->hold_calls();
  const int pokes = lock.pokes;
  EXPECT_FALSE(calls.is_due());
  EXPECT_FALSE(calls.make(LocalTime::max()));
  release_as("other~1", "report");
  executor->run();
  EXPECT_TRUE(executor->pending_calls().empty());
  EXPECT_TRUE(calls.is_due());
  EXPECT_GT(lock.pokes, pokes) << "the thread sleeps on";
  EXPECT_TRUE(calls.make(LocalTime::max()));
  EXPECT_TRUE(is_owner(lock));
  EXPECT_FALSE(calls.is_due());
}

// The driver ignores the deadline of the call that the waiting thread makes.
TEST_F(EngineTest, AThreadThatHangsInItsOwnCallIsNotGivenTheNext) {
  class Hanging : public FaultyStore {
   public:
    using FaultyStore::FaultyStore;
    Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
      if (const auto meanwhile = std::exchange(hangs, nullptr)) meanwhile();
      return FaultyStore::contend(claims, deadline);
    }
    std::function<void()> hangs;
  };
  const auto hanging = std::make_shared<Hanging>(memory);
  const auto clock = executor;
  const auto other = std::make_shared<Engine>(hanging, clock);
  take_as("other~1", "report");
  other->open();
  Spec spec;
  spec.mutex = "report";
  spec.label = "lock";
  spec.options = calm();
  spec.goal = Goal::kOnce;
  const auto who = other->enroll(std::move(spec));
  {
    Engine::OwnCalls calls(*other, who);
    ASSERT_EQ(other->start_inline(who, LocalTime::max()), Engine::Inline::kOpen);
    hanging->hangs = [&] {
      release_as("other~1", "report");
      clock->advance(10s);
      EXPECT_FALSE(calls.is_due());
      EXPECT_EQ(owner_of("report"), "lock") << "nobody made the next call";
    };
    EXPECT_TRUE(calls.make(LocalTime::max()));
    EXPECT_TRUE(other->term(*who)->is_owner());
  }
  other->finish(who);
  clock->advance(1s);
  other->close(0ns);
}

TEST_F(EngineTest, AClaimThatItsThreadNoLongerWantsIsNotSent) {
  take_as("other~1", "report");
  Contender& lock = enroll_lock("report");
  {
    const Engine::OwnCalls calls(*engine, lock.who);
    engine->start_inline(lock.who, LocalTime::max());
    EXPECT_TRUE(calls.is_due());
    release_as("other~1", "report");
    engine->give_up(lock.who);
  }
  EXPECT_EQ(owner_of("report"), "");
  Contender& next = contend_as("next", "report");  // nor does it hold up the lane
  EXPECT_TRUE(is_owner(next));
}

TEST_F(EngineTest, ATakeThatArrivesAfterItsReleaseIsReleasedAgain) {
  executor->hold_calls();
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  const auto take = only_call();
  take->send();
  engine->give_up(lock.who);
  for (const auto& call : executor->pending_calls()) {
    if (call != take) call->complete();  // the release finds nothing
  }
  take->perform();
  EXPECT_EQ(owner_of("report"), "lock");
  take->complete();
  executor->let_calls_go();
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, ATakeThatOvertakesTheAnswerOfItsReleaseIsReleasedAgain) {
  executor->hold_calls();
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  const auto take = only_call();
  take->send();
  engine->give_up(lock.who);
  std::shared_ptr<HeldCall> release;
  for (const auto& call : executor->pending_calls()) {
    if (call != take) release = call;
  }
  ASSERT_TRUE(release);
  release->perform();  // finds nothing
  take->perform();
  take->complete();  // and is heard of first
  release->complete();
  executor->let_calls_go();
  executor->advance(1s);
  EXPECT_EQ(owner_of("report"), "") << "an orphan blocks everybody for a whole lease";
}

TEST_F(EngineTest, ARetiredIdThatAnObservationNamesIsReleasedAgain) {
  executor->hold_calls();
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  const auto take = only_call();
  const std::string id = lock.who->machine.wire_id();
  take->lose();
  take->complete();
  engine->give_up(lock.who);
  executor->let_calls_go();
  EXPECT_EQ(owner_of("report"), "");
  take_as(id, "report");  // the lost claim arrives at last
  Contender& heir = contend_as("heir", "report");
  executor->advance(1s);
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, TheIdOfATermThatEndedWellIsReleasedAgainWhenALateClaimRevivesIt) {
  Contender& leader = contend_as("leader", "report");
  const std::string id = leader.term.wire_id();
  engine->stop(leader.who);
  executor->run();
  take_as(id, "report");  // a claim that was doubled on the way
  Contender& heir = contend_as("heir", "report");
  executor->advance(1s);
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, Etcd11456ATakeAnsweredAfterItsLeaseIsGivenBackAndNeverAdopted) {
  executor->hold_calls();
  Contender& leader = contend_as("leader", "report");
  const auto take = only_call();
  take->perform();
  const std::string id = seen("report").owner.id;
  executor->jump(10s);
  take->complete();
  EXPECT_FALSE(is_owner(leader));
  executor->let_calls_go();
  executor->advance(1s);
  EXPECT_TRUE(is_owner(leader));
  EXPECT_NE(leader.term.wire_id(), id);
}

TEST_F(EngineTest, NodeRedlock169TheLeaseIsCountedFromTheSendNotFromTheReply) {
  executor->hold_calls();
  Contender& leader = contend_as("leader", "report");
  const auto take = only_call();
  take->send();
  executor->jump(500ms);
  take->perform();
  executor->jump(500ms);
  take->complete();
  executor->run();
  EXPECT_EQ(leader.term.time_left(), 14840ms - 1s);
}

TEST_F(EngineTest, ShedLock231TheClocksOfStoreAndClientNeedNotAgree) {
  for (const milliseconds ahead :
       {milliseconds{-3'000'000}, milliseconds{0}, milliseconds{100'000'000'000}}) {
    const auto own_executor = std::make_shared<FakeExecutor>();
    const auto own_store = make_memory(own_executor->store_clock(ahead));
    const auto own = std::make_shared<Engine>(own_store, own_executor);
    own->open();
    const Claim dead{"report", "dead~1", 0, 0, 10s, 6s};
    own_store->contend({&dead, 1}, {});
    Spec spec;
    spec.mutex = "report";
    spec.label = "heir";
    spec.options = calm();
    const auto heir = own->enroll(std::move(spec));
    own->start(heir);
    own_executor->advance(16s);
    EXPECT_FALSE(own->snapshot(*heir).term) << ahead.count();
    own_executor->advance(1ms);
    EXPECT_TRUE(own->snapshot(*heir).term) << ahead.count();
    own_executor->advance(1min);
    EXPECT_TRUE(own->snapshot(*heir).term->is_in_ttl()) << ahead.count();
    own->close(0ns);
  }
}

// --- hung calls ---

TEST_F(EngineTest, ATakeThatHangsIsRepeatedBesideIt) {
  executor->hold_calls();
  Contender& leader = contend_as("leader", "report");
  only_call()->hang();
  executor->let_calls_go();
  executor->advance(4s);
  EXPECT_TRUE(is_owner(leader));
}

TEST_F(EngineTest, ARenewalThatHangsIsRepeatedBesideIt) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_calls();
  executor->advance(6700ms);
  only_call()->hang();
  executor->let_calls_go();
  executor->advance(1min);
  EXPECT_TRUE(is_in_ttl(leader));
  EXPECT_EQ(leader.told, Words{"acquired"});
}

TEST_F(EngineTest, APollThatHangsDoesNotKeepAWaiterFromTakingOver) {
  store->cannot_push();
  take_as("dead~1", "report");
  Contender& heir = contend_as("heir", "report");
  executor->hold_calls();
  executor->advance(1100ms);
  only_call()->hang();
  executor->let_calls_go();
  executor->advance(20s);
  EXPECT_TRUE(is_owner(heir));
}

TEST_F(EngineTest, APollThatHangsDoesNotBlindAnObserver) {
  store->cannot_push();
  Contender& observer = observe("report");
  executor->hold_calls();
  executor->advance(1100ms);
  only_call()->hang();
  executor->let_calls_go();
  take_as("a~1", "report");
  executor->advance(10s);
  EXPECT_EQ(observer.told, Words{"saw a~1"});
}

TEST_F(EngineTest, RenewalsGoOnBesideAcquisitionsThatHang) {
  Contender& leader = contend_as("leader", "report");
  executor->hold_calls();
  for (int i = 0; i < 30; ++i) {
    engine->start(enroll("busy", "other-" + std::to_string(i)).who);
    executor->advance(20ms);
  }
  for (const auto& call : executor->pending_calls()) {
    ASSERT_EQ(call->lane(), Lane::kAsk);
  }
  executor->advance(6500ms);
  std::size_t renewals = 0;
  for (const auto& call : executor->pending_calls()) {
    if (call->lane() != Lane::kKeep) continue;
    ++renewals;
    call->complete();
  }
  EXPECT_GE(renewals, 1U);
  executor->advance(3s);
  EXPECT_TRUE(is_in_ttl(leader));
}

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
  EXPECT_FALSE(is_owner(lock));
  release_as("other~1", "report");
  executor->run();
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
  executor->run();
  engine->finish_inline(holder.who);
  executor->run();
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

// --- odds and ends ---

TEST_F(EngineTest, ACallThatIsCompletedTwiceCountsOnce) {
  executor->hold_calls();
  Contender& leader = contend_as("leader", "report");
  const auto take = only_call();
  take->complete();
  take->call().complete();
  executor->let_calls_go();
  EXPECT_EQ(leader.told, Words{"acquired"});
  executor->advance(1min);
  EXPECT_TRUE(is_in_ttl(leader));
  Contender& other = contend_as("other", "second-report");
  EXPECT_TRUE(is_owner(other));
}

TEST_F(EngineTest, AStoreThatAnswersTooFewQuestionsIsCorruptAndNobodyIsOwner) {
  class Mute : public FaultyStore {
   public:
    using FaultyStore::FaultyStore;
    Answers contend(std::span<const Claim>, LocalTime) override { return {}; }
  };
  const auto mute_executor = std::make_shared<FakeExecutor>();
  const auto mute = std::make_shared<Engine>(std::make_shared<Mute>(memory), mute_executor);
  mute->open();
  Spec spec;
  spec.mutex = "report";
  spec.label = "me";
  const auto who = mute->enroll(std::move(spec));
  mute->start(who);
  mute_executor->advance(5s);
  const auto snapshot = mute->snapshot(*who);
  EXPECT_FALSE(snapshot.term);
  ASSERT_TRUE(snapshot.trouble);
  EXPECT_EQ(snapshot.trouble->errc(), Errc::kCorrupt);
  mute->close(0ns);
}

TEST_F(EngineTest, Original13TheRealErrorIsShownAndForgottenWithTheNextAnswer) {
  store->fail_before(Error(Errc::kDenied, "who are you"));
  Contender& leader = contend_as("leader", "report");
  const auto trouble = engine->snapshot(*leader.who).trouble;
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->errc(), Errc::kDenied);
  EXPECT_FALSE(engine->snapshot(*leader.who).has_answer);
  executor->advance(1s);
  EXPECT_FALSE(engine->snapshot(*leader.who).trouble);
  EXPECT_TRUE(is_owner(leader));
}

TEST_F(EngineTest, TheLateFailureOfAnEarlierLifeIsNoTroubleOfThisOne) {
  executor->hold_calls();
  Contender& lock = enroll_lock("report");
  engine->start(lock.who);
  const auto old_take = only_call();
  executor->advance(100ms);
  engine->give_up(lock.who);
  engine->start(lock.who);
  executor->advance(3s);  // the old call is overdue
  for (const auto& call : executor->pending_calls()) {
    if (call != old_take) call->complete();
  }
  EXPECT_TRUE(is_owner(lock));
  old_take->lose();
  old_take->complete();
  EXPECT_FALSE(engine->snapshot(*lock.who).trouble);
  EXPECT_TRUE(is_owner(lock));
}

TEST_F(EngineTest, AWatchIsKeptForATenthOfASecondForWhoComesNext) {
  const Contender& first = contend_as("one", "report");
  const auto leave = [&] {
    engine->stop(first.who);
    executor->run();
  };
  leave();
  executor->advance(60ms);
  EXPECT_EQ(store->watches(), 1U);
  engine->start(first.who);
  executor->run();
  EXPECT_EQ(store->watches(), 1U) << "the same";
  leave();
  executor->advance(99ms);
  EXPECT_EQ(store->watches(), 1U) << "counted anew";
  executor->advance(1ms);
  EXPECT_EQ(store->watches(), 0U);
}

TEST_F(EngineTest, AWatchThatIsWantedAgainIsNotDropped) {
  const Contender& first = contend_as("one", "report");
  engine->stop(first.who);
  executor->run();
  engine->start(first.who);
  executor->advance(1s);
  EXPECT_EQ(store->watches(), 1U);
}

TEST_F(EngineTest, AnEngineThatClosesDropsTheWatchesItKept) {
  engine->stop(contend_as("one", "report").who);
  executor->run();
  ASSERT_EQ(store->watches(), 1U);
  engine->close(0ns);
  EXPECT_EQ(store->watches(), 0U);
  engine->open();
}

TEST_F(EngineTest, AMutexNobodyCaresForAnyMoreIsForgotten) {
  for (int i = 0; i < 100; ++i) {
    Contender& lock = enroll_lock("order-" + std::to_string(i));
    engine->start_inline(lock.who, executor->now() + 1s);
    engine->finish_inline(lock.who);
  }
  const std::weak_ptr<Enrolled> last = contenders.back().who;
  contenders.clear();
  executor->advance(1min);
  EXPECT_TRUE(last.expired());
}

TEST_F(EngineTest, AnEngineThatGoesLetsGoOfEverybody) {
  const auto own_executor = std::make_shared<FakeExecutor>();
  auto own = std::make_shared<Engine>(memory, own_executor);
  own->open();
  Spec spec;
  spec.mutex = "report";
  spec.label = "me";
  std::weak_ptr<Enrolled> who;
  {
    const auto enrolled = own->enroll(std::move(spec));
    own->start(enrolled);
    own_executor->run();
    who = enrolled;
  }
  EXPECT_FALSE(who.expired());  // active: it holds itself
  own->close(0ns);
  own.reset();
  EXPECT_TRUE(who.expired());
}

TEST_F(EngineTest, AnEngineThatGoesDuringAPollLetsGoOfAllWhoSharedIt) {
  const auto own_executor = std::make_shared<FakeExecutor>();
  const auto own_store = std::make_shared<FaultyStore>(memory);
  own_store->cannot_push();
  auto own = std::make_shared<Engine>(own_store, own_executor);
  own->open();
  take_as("other~1", "report");
  std::vector<std::weak_ptr<Enrolled>> waiters;
  for (int i = 0; i < 3; ++i) {
    Spec spec;
    spec.mutex = "report";
    spec.label = "waiter";
    spec.options = calm();
    const auto enrolled = own->enroll(std::move(spec));
    own->start(enrolled);
    waiters.push_back(enrolled);
  }
  own_executor->run();
  own_executor->hold_calls();
  own_executor->advance(1100ms);  // one asks, the others share its answer
  own->close(0ns);
  own.reset();
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter.expired());
}

TEST_F(EngineTest, AUsersExecutorThatRefusesATaskHarmsNobodyElse) {
  Contender& good = contend_as("good", "report");
  Contender& bad = contenders.emplace_back();
  Spec spec = spec_of(bad, "bad", "other", calm());
  spec.handle_executor = [](const std::function<void()>&) {
    throw std::runtime_error("shut down");
  };
  bad.who = engine->enroll(std::move(spec));
  EXPECT_NO_THROW(engine->start(bad.who));
  for (int i = 0; i < 60; ++i) EXPECT_NO_THROW(executor->advance(1s));
  EXPECT_TRUE(is_in_ttl(good));
}

}  // namespace
}  // namespace simba::core
