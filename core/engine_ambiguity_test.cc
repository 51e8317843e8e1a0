#include "core/engine_fixture.h"

namespace simba::core {
namespace {

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

// Many give up on one mutex, and no call is answered in time.
class EngineOutageTest : public EngineTest {
 protected:
  static constexpr std::size_t kGivenUp = 40;

  void give_up_on(const std::string& mutex) {
    executor->hold_calls();
    for (std::size_t i = 0; i < kGivenUp; ++i) {
      Contender& lock = enroll_lock(mutex);
      engine->start(lock.who);
      executor->advance(15ms);
      lose_all();  // its take is under way
      engine->give_up(lock.who);
    }
  }
  void lose_all() {
    for (const auto& call : executor->pending_calls()) {
      call->lose();
      call->complete();
    }
  }
  void last_for(nanoseconds span) {
    for (nanoseconds passed{}; passed < span; passed += 1250ms) {
      executor->advance(1250ms);
      lose_all();
    }
  }
};

TEST_F(EngineOutageTest, AnOutageDoesNotPileUpWhatIsToBeGivenBack) {
  give_up_on("report");
  last_for(25s);
  executor->let_calls_go();
  EXPECT_GT(store->releases(), 0U);
  EXPECT_LE(store->releases(), kGivenUp) << "each once";
}

TEST_F(EngineOutageTest, WhatNoLeaseCanBeLeftOfIsNotGivenBackAnyMore) {
  give_up_on("report");
  last_for(40s);
  executor->let_calls_go();
  EXPECT_EQ(store->releases(), 0U);
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

}  // namespace
}  // namespace simba::core
