#include "simba/event.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/engine.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

// What the hook for logs and metrics hears of the engine, in virtual time.
namespace simba::core {
namespace {

using namespace std::chrono_literals;
using testing::FakeExecutor;
using testing::FaultyStore;
using Kind = Event::Kind;
using Kinds = std::vector<Kind>;

// An event that outlives its hook.
struct Heard {
  Kind kind;
  std::string mutex, wire_id;
  Token token;
  LossReason reason;
  nanoseconds duration;
  std::size_t claims;
  std::string error;  // what it says; empty: none
};

// A store whose every claim takes that long.
class SlowStore : public FaultyStore {
 public:
  SlowStore(std::shared_ptr<Store> store, FakeExecutor& executor)
      : FaultyStore(std::move(store)), executor_(executor) {}
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    executor_.jump(takes);
    return FaultyStore::contend(claims, deadline);
  }

  nanoseconds takes{};

 private:
  FakeExecutor& executor_;
};

class EventTest : public ::testing::Test {
 public:
  EventTest() { engine->open(); }
  ~EventTest() override {
    for (const auto& who : enrolled) engine->stop(who);
    executor->advance(1min);
    engine->close(0ns);
  }

 protected:
  std::shared_ptr<Enrolled> enroll(std::string mutex, Goal goal = Goal::kKeep) {
    Spec spec;
    spec.mutex = std::move(mutex);
    spec.label = "me";
    spec.goal = goal;
    if (goal != Goal::kOnce) spec.notify = [](const MutexState&) {};
    return enrolled.emplace_back(engine->enroll(std::move(spec)));
  }
  std::shared_ptr<Enrolled> contend(std::string mutex) {
    auto who = enroll(std::move(mutex));
    engine->start(who);
    executor->run();
    return who;
  }
  // All but the calls, in order.
  Kinds kinds() const {
    Kinds all;
    for (const Heard& event : heard) {
      if (event.kind != Kind::kCalled) all.push_back(event.kind);
    }
    return all;
  }
  // The last one of this kind.
  Heard last(Kind kind) const {
    const auto found = std::find_if(heard.rbegin(), heard.rend(),
                                    [&](const Heard& event) { return event.kind == kind; });
    return found == heard.rend() ? Heard{} : *found;
  }

  std::vector<Heard> heard;
  std::vector<std::shared_ptr<Enrolled>> enrolled;
  std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  std::shared_ptr<Store> memory = make_memory(executor->store_clock());
  std::shared_ptr<SlowStore> store = std::make_shared<SlowStore>(memory, *executor);
  std::shared_ptr<Engine> engine =
      std::make_shared<Engine>(store, executor, [this](const Event& event) {
        heard.push_back({event.kind, std::string(event.mutex), std::string(event.wire_id),
                         event.token, event.reason, event.duration, event.claims,
                         event.error ? event.error->what() : ""});
      });
};

TEST_F(EventTest, AnAcquisitionIsToldOnceWithMutexIdAndToken) {
  const auto who = contend("report");
  ASSERT_EQ(kinds(), Kinds{Kind::kAcquired});
  const Heard acquired = last(Kind::kAcquired);
  EXPECT_EQ(acquired.mutex, "report");
  EXPECT_EQ(acquired.wire_id, engine->term(*who)->wire_id);
  EXPECT_EQ(acquired.token, engine->term(*who)->token);
  EXPECT_EQ(acquired.reason, LossReason::kNone);
}

TEST_F(EventTest, WhatTheOwnerGaveUpIsReleasedAndNotRevoked) {
  const auto who = contend("report");
  const Token token = engine->term(*who)->token;
  engine->stop(who);
  executor->run();
  EXPECT_EQ(kinds(), (Kinds{Kind::kAcquired, Kind::kReleased}));
  EXPECT_EQ(last(Kind::kReleased).reason, LossReason::kReleased);
  EXPECT_EQ(last(Kind::kReleased).mutex, "report");
  EXPECT_EQ(last(Kind::kReleased).token, token);
}

TEST_F(EventTest, WhatTheOwnerLostIsRevokedAndNotReleased) {
  const auto who = contend("report");
  const Token token = engine->term(*who)->token;
  store->go_down();
  executor->advance(15s);
  EXPECT_EQ(std::count_if(heard.begin(), heard.end(),
                          [](const Heard& event) { return event.kind == Kind::kRevoked; }),
            1);
  EXPECT_EQ(last(Kind::kRevoked).reason, LossReason::kUnreachable);
  EXPECT_EQ(last(Kind::kRevoked).mutex, "report");
  EXPECT_EQ(last(Kind::kRevoked).token, token);
  EXPECT_EQ(last(Kind::kReleased).mutex, "") << "nobody released it";
  store->heal();
}

// Locks, of which nobody else is told: what is left for the callbacks' threads is the hook's.
class EventOrderTest : public EventTest {
 protected:
  std::shared_ptr<Enrolled> lock(std::string mutex) {
    auto who = enroll(std::move(mutex), Goal::kOnce);
    EXPECT_EQ(engine->start_inline(who, LocalTime::max()), Engine::Inline::kHeld);
    return who;
  }
  // By the dispatcher, at the end of its lease.
  void lose(Enrolled& who) {
    store->go_down();
    executor->advance(15s);
    store->heal();
    EXPECT_TRUE(engine->term(who)->lost().stop_requested());
  }
};

// P4: the hook may block, and the next deadline must not wait for it.
TEST_F(EventOrderTest, WhatTheDispatcherDidIsToldOnAThreadOfCallbacks) {
  const auto who = lock("report");
  executor->hold_callbacks();
  lose(*who);
  EXPECT_EQ(last(Kind::kRevoked).mutex, "") << "told on the dispatcher";
  EXPECT_EQ(executor->pending_callbacks(), 1U);
  executor->let_callbacks_go();
  EXPECT_EQ(last(Kind::kRevoked).mutex, "report");
  EXPECT_EQ(last(Kind::kRevoked).wire_id, engine->term(*who)->wire_id);
  EXPECT_EQ(last(Kind::kRevoked).reason, LossReason::kUnreachable);
}

TEST_F(EventOrderTest, NothingOfTheSameMutexOvertakesWhatThatThreadHasToTell) {
  const auto first = lock("report");
  executor->hold_callbacks();
  lose(*first);
  executor->advance(10s);  // until its lease is over in the store too
  heard.clear();
  const auto heir = lock("report");
  lock("other");
  EXPECT_EQ(kinds(), Kinds{Kind::kAcquired});
  EXPECT_EQ(last(Kind::kAcquired).mutex, "other") << "it has nothing to wait for";
  executor->let_callbacks_go();
  EXPECT_EQ(kinds(), (Kinds{Kind::kAcquired, Kind::kRevoked, Kind::kAcquired}));
  EXPECT_EQ(last(Kind::kAcquired).wire_id, engine->term(*heir)->wire_id);
  engine->finish_inline(heir);
  EXPECT_EQ(kinds().back(), Kind::kReleased) << "all is told: it is told at once again";
}

TEST_F(EventTest, ARevocationNamesItsReason) {
  const auto who = contend("report");
  const Observation owned = [&] {
    const std::string_view name = "report";
    return std::get<Observation>(memory->observe({&name, 1}, {}).at(0));
  }();
  memory->evict("report", owned.owner.id, owned.owner.token, Eviction::kKeepLease, {});
  executor->advance(7s);  // the next renewal hears of it
  EXPECT_EQ(last(Kind::kRevoked).reason, LossReason::kForced);
  executor->advance(10s);
  ASSERT_EQ(kinds().back(), Kind::kAcquired) << "it contends again";
  executor->jump(1h);
  executor->run();
  EXPECT_EQ(last(Kind::kRevoked).reason, LossReason::kClockJump);
}

TEST_F(EventTest, EachRenewalIsToldAndEachThatFailedWithItsError) {
  contend("report");
  executor->advance(14s);  // two thirds of 10 s, twice
  EXPECT_EQ(kinds(), (Kinds{Kind::kAcquired, Kind::kRenewed, Kind::kRenewed}));
  store->fail_before(Error(Errc::kUnreachable, "no route"));
  executor->advance(6500ms);
  EXPECT_EQ(kinds().at(3), Kind::kRenewalFailed);
  EXPECT_NE(last(Kind::kRenewalFailed).error.find("no route"), std::string::npos);
  EXPECT_EQ(kinds().back(), Kind::kRenewed) << "and it was repeated";
}

TEST_F(EventTest, ACallIsToldWithItsDurationAndItsClaims) {
  executor->hold_calls();
  engine->start(enroll("a"));
  const auto calls = executor->pending_calls();
  ASSERT_EQ(calls.size(), 1U);
  executor->jump(200ms);
  calls[0]->send();
  executor->jump(70ms);
  calls[0]->complete();
  EXPECT_EQ(last(Kind::kCalled).duration, 70ms) << "from where it was sent, not asked for";
  EXPECT_EQ(last(Kind::kCalled).claims, 1U);
  executor->let_calls_go();
  contend("b");
  contend("c");
  store->takes = 30ms;
  executor->advance(7s);
  EXPECT_EQ(last(Kind::kCalled).duration, 30ms);
  EXPECT_EQ(last(Kind::kCalled).claims, 3U) << "all renewals in one";
}

TEST_F(EventTest, ACallOfTheCallersOwnThreadIsToldWithItsDuration) {
  const auto lock = enroll("report", Goal::kOnce);
  store->takes = 30ms;
  EXPECT_EQ(engine->start_inline(lock, LocalTime::max()), Engine::Inline::kHeld);
  EXPECT_EQ(last(Kind::kCalled).duration, 30ms);
  EXPECT_EQ(last(Kind::kCalled).claims, 1U);
  engine->finish_inline(lock);
  EXPECT_EQ(last(Kind::kCalled).duration, 0ms) << "a release takes no time here";
}

TEST_F(EventTest, ACallThatFailedIsToldWithItsError) {
  store->fail_before(Error(Errc::kDenied, "not you"));
  contend("report");
  EXPECT_NE(heard.front().error.find("not you"), std::string::npos);
  EXPECT_EQ(heard.front().kind, Kind::kCalled);
}

}  // namespace
}  // namespace simba::core
