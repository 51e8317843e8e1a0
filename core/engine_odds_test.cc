#include "core/engine_fixture.h"

namespace simba::core {
namespace {

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

// What a store may say of the asker itself, and is never believed.
TEST_F(EngineTest, AnAnswerThatNamesTheAskerIsNoGrantUnlessAllOfItIsRight) {
  Token highest = 0;
  while (highest < 3) {
    const Contender& earlier = contend_as("earlier", "report");
    highest = earlier.term.token();
    engine->stop(earlier.who);
    executor->run();
  }
  const std::pair<const char*, std::function<void(Observation&)>> lies[] = {
      {"no token", [](Observation& seen) { seen.owner.token = 0; }},
      {"a token below one that was seen",
       [&](Observation& seen) { seen.owner.token = highest - 1; }},
      {"a lease that is over",
       [](Observation& seen) { seen.owner.transition_at = seen.now - 1ms; }},
      {"a lease that ended before all time",
       [](Observation& seen) { seen.owner.transition_at = StoreTime::min(); }},
  };
  for (const auto& [what, lie] : lies) {
    store->alter([&lie = lie](const Asked::Claimed& claim, Answer& answer) {
      if (auto* seen = std::get_if<Observation>(&answer); seen != nullptr && claim.token == 0) {
        seen->owner.id = claim.wire_id;
        lie(*seen);
      }
    });
    Contender& asker = contend_as("asker", "report");
    executor->advance(1s);
    EXPECT_FALSE(is_owner(asker)) << what;
    engine->stop(asker.who);
    store->alter({});
    executor->advance(1min);
  }
  EXPECT_TRUE(is_owner(contend_as("last", "report"))) << "the truth is believed again";
}

TEST_F(EngineTest, ARenewalThatIsAnsweredWithAnotherTokenEndsTheTerm) {
  Contender& owner = contend_as("owner", "report");
  for (const Token off : {Token{1}, ~Token{0}}) {  // above, and below
    store->alter([off](const Asked::Claimed& claim, Answer& answer) {
      if (auto* seen = std::get_if<Observation>(&answer); seen != nullptr && claim.token != 0)
        seen->owner.token += off;
    });
    const Token before = owner.term.token();
    ASSERT_TRUE(is_owner(owner));
    executor->advance(10s);
    EXPECT_NE(owner.term.token(), before) << "a renewal was due";
    store->alter({});
    executor->advance(1min);
  }
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

TEST_F(EngineTest, WhoeverIsToldThatTheStoreWasReplacedAllTermsAreOver) {
  std::vector<Term> terms;
  for (const char* mutex : {"report", "invoice", "backup"}) {
    terms.push_back(contend_as("leader", mutex).term);
  }
  store->fail_before(Error(Errc::kReplaced, "another file"));
  observe("something else");
  for (const Term& term : terms) {
    EXPECT_FALSE(term.is_owner());
    EXPECT_TRUE(term.lost().stop_requested());
    EXPECT_EQ(term.loss().reason, LossReason::kReplaced);
  }
}

// Of one process, whose store goes, or is another one at the first renewal.
TEST_F(EngineTest, AThousandTermsThatEndTogetherAreAllToldInOneMoment) {
  for (const LossReason reason : {LossReason::kUnreachable, LossReason::kReplaced}) {
    SCOPED_TRACE(to_string(reason));
    std::vector<Contender*> leaders;
    std::vector<LocalTime> told;
    for (int i = 0; i < 1'000; ++i) {
      Contender& leader = contend_as("leader", to_string(reason) + std::to_string(i));
      leader.on_released = [&](const MutexState& state) {
        EXPECT_EQ(state.loss.reason, reason);
        told.push_back(executor->now());
      };
      leaders.push_back(&leader);
    }
    const LocalTime end = executor->now() + leaders.front()->term.time_left();
    store->go_down(reason == LossReason::kReplaced ? Error(Errc::kReplaced, "another file")
                                                   : kUnreachable);
    while (told.empty() && executor->now() < end) executor->advance(1ms);
    EXPECT_EQ(told.size(), 1'000U);
    EXPECT_EQ(std::count(told.begin(), told.end(), told.at(0)), 1'000);
    EXPECT_LE(executor->now(), end);
    for (const Contender* leader : leaders) {
      EXPECT_TRUE(leader->term.lost().stop_requested());
      EXPECT_FALSE(is_owner(*leader));
    }
    store->heal();
    executor->advance(20s);
    for (Contender* leader : leaders) leader->on_released = {};
  }
}

TEST_F(EngineTest, AReplacedStoreEndsAlsoWhatWasAbandoned) {
  ContendOptions briefly = calm();
  briefly.max_hold = 2s;
  Contender& drains = contend_as("drains", "report", briefly);
  Contender& has_left = contend_as("has left", "invoice");
  executor->hold_callbacks();
  engine->stop(has_left.who);
  executor->advance(3001ms);
  ASSERT_EQ(phase(drains), Phase::kDraining);
  ASSERT_EQ(phase(has_left), Phase::kIdle);
  ASSERT_TRUE(is_owner(drains) && is_owner(has_left)) << "their work may still run";
  engine->store_was_replaced();
  for (const Contender* contender : {&drains, &has_left}) {
    EXPECT_FALSE(is_owner(*contender) || is_in_ttl(*contender));
    EXPECT_EQ(loss(*contender), LossReason::kReplaced);
  }
}

TEST_F(EngineTest, ABatchThatMeetsAReplacedStoreIsNotSentAgainInHalves) {
  const std::vector<Contender*> owners{&contend_as("leader", "report"),
                                       &contend_as("leader", "invoice"),
                                       &contend_as("leader", "backup")};
  store->forget();
  store->fail_before(Error(Errc::kReplaced, "another file"));
  executor->advance(7s);
  for (const Contender* owner : owners) {
    ASSERT_GE(owner->told.size(), 2U);
    EXPECT_EQ(owner->told[1], "released");
    EXPECT_TRUE(is_owner(*owner)) << "it contends again";
  }
  EXPECT_EQ(store->renewals(), 1U);
}

TEST_F(EngineTest, AReplacedStoreEndsATermAndItsContenderGoesOn) {
  const Contender& owner = contend_as("leader", "report");
  engine->store_was_replaced();
  executor->advance(1s);
  EXPECT_EQ(owner.told, (Words{"acquired", "released", "acquired"}));
}

// Who asked stood still with the answer of the old store, and others own in the new one.
TEST_F(EngineTest, AGrantOfAStoreThatWasReplacedMeanwhileIsNoTerm) {
  executor->hold_calls();
  const std::vector<Contender*> batch{&enroll("leader", "report"), &enroll("leader", "invoice")};
  contend_as("leader", "backup");  // the others wait for its call, and go out together
  const auto first = only_call();
  for (const Contender* contender : batch) engine->start(contender->who);
  first->complete();
  const auto takes = only_call();
  takes->perform();
  for (const char* mutex : {"report", "invoice"}) {
    release_as(seen(mutex).owner.id, mutex);
    take_as("other~1", mutex);
  }
  engine->store_was_replaced();
  takes->complete();
  executor->let_calls_go();
  for (const Contender* contender : batch) {
    EXPECT_EQ(contender->told, Words{}) << "of the old store it hears nothing";
    EXPECT_EQ(engine->snapshot(*contender->who).trouble->errc(), Errc::kReplaced);
  }
  for (const char* mutex : {"report", "invoice"}) release_as("other~1", mutex);
  executor->advance(10s);
  for (const Contender* contender : batch) EXPECT_TRUE(is_owner(*contender)) << "in the new one";
}

TEST_F(EngineTest, AGrantOfAStoreThatWasReplacedMeanwhileIsNoTermOfItsCallerEither) {
  Contender& lock = enroll_lock("report");
  store->alter([&](const Asked::Claimed& claim, Answer&) {
    store->alter({});
    release_as(claim.wire_id, claim.mutex);
    take_as("other~1", claim.mutex);
    engine->store_was_replaced();
  });
  EXPECT_EQ(engine->start_inline(lock.who, LocalTime::max()), Engine::Inline::kOpen);
  EXPECT_FALSE(is_owner(lock));
  EXPECT_EQ(engine->snapshot(*lock.who).trouble->errc(), Errc::kReplaced);
  release_as("other~1", "report");
  executor->advance(1s);
  Engine::OwnCalls calls(*engine, lock.who);
  make_all(calls);
  EXPECT_TRUE(is_owner(lock)) << "in the new one";
}

TEST_F(EngineTest, WhoOwnedInAStoreThatWasReplacedMeanwhileIsNoNews) {
  take_as("old~1", "report");
  executor->hold_calls();
  const Contender& observer = observe("report");
  const Contender& onlooker = observe("report");
  const auto question = only_call();
  question->perform();
  release_as("old~1", "report");
  take_as("new~1", "report");
  engine->store_was_replaced();
  question->complete();
  executor->let_calls_go();
  executor->advance(1s);
  EXPECT_EQ(observer.told, Words{"saw new~1"});
  EXPECT_EQ(onlooker.told, Words{"saw new~1"});
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

// Else a hint that outlives everybody would end its own watch, and wait for itself.
TEST_F(EngineTest, AnEngineThatIsClosedHasNoWatchesOfThoseWhoAreNotOver) {
  for (const bool queues : {false, true}) {
    const auto own_store = std::make_shared<FaultyStore>(memory);
    StoreTraits traits = memory->traits();
    traits.queues_waiters = queues;
    own_store->set_traits(traits);
    const auto own_executor = std::make_shared<FakeExecutor>();
    const auto own = std::make_shared<Engine>(own_store, own_executor);
    own->open();
    std::vector<std::shared_ptr<Enrolled>> two;
    for (const char* label : {"before", "after"}) {
      Spec spec;
      spec.mutex = label;
      spec.label = label;
      two.push_back(own->enroll(std::move(spec)));
    }
    own->start(two.front());
    own_executor->run();
    ASSERT_EQ(own_store->watches(), 1U);
    own->close(0ns);
    EXPECT_EQ(own_store->watches(), 0U);
    own->start(two.back());
    own_executor->run();
    EXPECT_EQ(own_store->watches(), 0U);
  }
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

TEST_F(EngineTest, AStoreMayThrowWhateverItLikes) {
  store->alter([throws = std::make_shared<bool>(true)](const Asked::Claimed&, Answer&) {
    if (std::exchange(*throws, false)) throw 42;
  });
  Contender& leader = contend_as("leader", "report");
  EXPECT_FALSE(is_owner(leader));
  ASSERT_TRUE(engine->snapshot(*leader.who).trouble);
  EXPECT_EQ(engine->snapshot(*leader.who).trouble->errc(), Errc::kCorrupt);
  executor->advance(1s);
  EXPECT_TRUE(is_in_ttl(leader));
}

TEST_F(EngineTest, WhatTheUsersExecutorDropsRunsOnAThreadOfCallbacks) {
  Contender& leader = contenders.emplace_back();
  Spec spec = spec_of(leader, "leader", "report", calm());
  spec.handle_executor = [](const std::function<void()>&) {};
  leader.who = engine->enroll(std::move(spec));
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, Words{"acquired"});
  engine->stop(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  EXPECT_EQ(owner_of("report"), "");
}

TEST_F(EngineTest, WhatTheUsersExecutorTakesAndRefusesAllTheSameRunsOnce) {
  std::vector<std::function<void()>> taken;
  Contender& leader = contenders.emplace_back();
  Spec spec = spec_of(leader, "leader", "report", calm());
  spec.handle_executor = [&](const std::function<void()>& task) {
    taken.push_back(task);
    throw std::runtime_error("its thread could not be woken");
  };
  leader.who = engine->enroll(std::move(spec));
  // While one thread is in the callback, the other comes to it.
  leader.on_acquired = [&](const MutexState&) {
    engine->stop(leader.who);
    for (const auto& task : taken) task();
    EXPECT_EQ(leader.told, Words{"acquired"}) << "on_released came during on_acquired";
  };
  engine->start(leader.who);
  executor->run();
  EXPECT_EQ(leader.told, (Words{"acquired", "released"}));
  taken.clear();
}

// Asks the engine for something when it goes, as what a user hands over may.
struct Asks {
  explicit Asks(std::function<void()> question) : ask(std::move(question)) {}
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;
  ~Asks() { ask(); }
  const std::function<void()> ask;
};

TEST_F(EngineTest, WhatAUserHandedOverIsDestroyedOutsideTheLock) {
  executor->hold_calls();
  Contender& first = observe("report");
  bool asked = false;
  {
    auto asks = std::make_shared<Asks>([&] {
      asked = true;
      phase(first);
    });
    Spec spec;
    spec.mutex = "report";
    spec.options = calm();
    spec.goal = Goal::kObserve;
    spec.notify = [asks](const MutexState&) {};
    const auto rider = engine->enroll(std::move(spec));
    asks.reset();
    engine->start(rider);  // it shares the question of the first
    executor->run();
    engine->stop(rider);
    executor->advance(4s);  // the call hangs in the driver: it is not waited for any longer
  }
  EXPECT_FALSE(asked);
  executor->pending_calls().front()->complete();
  EXPECT_TRUE(asked);
}

TEST_F(EngineTest, AClaimThatWasNeverSentDoesNotHoldUpTheNextOne) {
  executor->hold_calls();
  Contender& first = enroll_lock("report");
  Contender& second = enroll_lock("report");
  engine->start(first.who);
  engine->start(second.who);
  executor->run();
  const auto take = only_call();  // the second one's waits behind it
  engine->give_up(second.who);
  engine->start(second.who);
  engine->give_up(first.who);
  take->lose();
  take->complete();
  executor->run();
  executor->let_calls_go();
  EXPECT_TRUE(is_owner(second)) << "it waits for a call that nobody made";
}

// A stop callback may wait for its own work: it would hold up an unlock() that is none of its.
TEST_F(EngineTest, WhoUnlocksMakesNoStopRequestButItsOwn) {
  ContendOptions longer = calm();
  longer.ttl = 60s;
  Contender& mine = enroll_lock("mine", longer);
  ASSERT_EQ(engine->start_inline(mine.who, LocalTime::max()), Engine::Inline::kHeld);
  // A token that is made later knows of the loss at once.
  const std::stop_token my_loss = Term(engine->snapshot(*mine.who).term).lost();
  std::vector<Contender*> others;
  for (const char* mutex : {"a", "b", "c", "d"}) {
    others.push_back(&enroll_lock(mutex, longer));
    engine->start_inline(others.back()->who, LocalTime::max());
  }
  Contender& leader = contend_as("leader", "report");
  const std::stop_token its_loss = leader.term.lost();
  const LocalTime renews = leader.who->machine.next_timer();

  executor->hold_calls();
  executor->advance(renews - executor->now() - 40ms);
  for (Contender* other : others) {
    engine->finish(other->who);  // four calls: there is no room for another
    executor->advance(10ms);
  }
  executor->advance(2600ms);  // the renewal still stands in line, and is not waited for any more
  executor->jump(6s);
  EXPECT_FALSE(is_owner(leader));
  engine->finish_inline(mine.who);
  EXPECT_TRUE(my_loss.stop_requested());
  EXPECT_FALSE(its_loss.stop_requested());
  executor->run();
  EXPECT_TRUE(its_loss.stop_requested());
}

TEST_F(EngineTest, AWatchThatCannotBeMadeIsDoneWithout) {
  class Blind : public FaultyStore {
   public:
    using FaultyStore::FaultyStore;
    std::unique_ptr<Watch> watch(std::string_view, std::string_view,
                                 std::function<void()>) override {
      throw Error(Errc::kUnreachable, "no watch today");
    }
  };
  for (const bool queues : {false, true}) {
    const auto blind_store = std::make_shared<Blind>(memory);
    StoreTraits traits = memory->traits();
    traits.queues_waiters = queues;
    blind_store->set_traits(traits);
    const auto blind_executor = std::make_shared<FakeExecutor>();
    const auto blind = std::make_shared<Engine>(blind_store, blind_executor);
    blind->open();
    Spec spec;
    spec.mutex = queues ? "queue" : "row";
    spec.label = "me";
    const auto who = blind->enroll(std::move(spec));
    blind->start(who);
    blind_executor->advance(1s);
    EXPECT_EQ(blind->phase(*who), Phase::kHolding);
    blind->close(0ns);
  }
}

TEST_F(EngineTest, WhoIsToldThatHintsHaveEndedAsksMoreOften) {
  contend_as("leader", "report");
  Contender& waiter = contend_as("waiter", "report");
  executor->advance(10s);
  const auto questions_in = [&](nanoseconds span) {
    store->forget();
    executor->advance(span);
    return store->questions() + store->takes();
  };
  EXPECT_LE(questions_in(10s), 3U);
  store->end_hints();
  executor->advance(5s);  // until it asks, and sees that they have
  EXPECT_GE(questions_in(10s), 7U);
  EXPECT_FALSE(is_owner(waiter));
}

}  // namespace
}  // namespace simba::core
