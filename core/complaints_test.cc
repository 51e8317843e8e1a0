#include "core/complaints.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

// What the log says of a store's trouble.
namespace simba::core {
namespace {

using namespace std::chrono_literals;
using testing::Asked;
using testing::FakeExecutor;
using testing::FaultyStore;

const Error kDown(Errc::kUnreachable, "no route");

TEST(ComplaintsTest, TheSameTroubleIsSaidAtOnceAndThenEachMinute) {
  Complaints complaints;
  LocalTime now{1h};
  EXPECT_TRUE(complaints.failed({}, kDown, now));
  EXPECT_FALSE(complaints.failed({}, kDown, now + 59s));
  EXPECT_TRUE(complaints.failed({}, kDown, now + 60s));
  EXPECT_FALSE(complaints.failed({}, kDown, now + 61s));
}

TEST(ComplaintsTest, AnotherKindOrAnotherMutexIsSaidAtOnce) {
  Complaints complaints;
  EXPECT_TRUE(complaints.failed("a", kDown, LocalTime{}));
  EXPECT_TRUE(complaints.failed("b", kDown, LocalTime{}));
  EXPECT_TRUE(complaints.failed("b", Error(Errc::kDenied, "not you"), LocalTime{}));
  EXPECT_FALSE(complaints.failed("b", kDown, LocalTime{}));
}

TEST(ComplaintsTest, OfOneKindThreeTextsAreSaidInAMinute) {
  Complaints complaints;
  const auto says = [&](int i, LocalTime now) {
    return complaints.failed({}, Error(Errc::kUnreachable, std::to_string(i)), now).has_value();
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(says(i % 10, LocalTime{1h}), i < 3) << i;
  EXPECT_TRUE(says(0, LocalTime{1h + 1min}));
  EXPECT_FALSE(says(0, LocalTime{1h + 1min}));
  EXPECT_TRUE(says(7, LocalTime{1h + 1min}));
}

TEST(ComplaintsTest, TheEndIsSaidOnceAndOnlyOfWholeCalls) {
  Complaints complaints;
  EXPECT_FALSE(complaints.answered());
  complaints.failed("a", kDown, LocalTime{});
  EXPECT_FALSE(complaints.answered()) << "the others were answered all the time";
  complaints.failed({}, kDown, LocalTime{});
  EXPECT_TRUE(complaints.answered());
  EXPECT_FALSE(complaints.answered());
  EXPECT_TRUE(complaints.failed({}, kDown, LocalTime{1s})) << "and what comes after it is new";
}

TEST(ComplaintsTest, WhatItRemembersIsBounded) {
  Complaints complaints;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(complaints.failed(std::to_string(i), kDown, LocalTime{}));
  }
  EXPECT_TRUE(complaints.failed("0", kDown, LocalTime{})) << "long forgotten";
}

// The engine's, in virtual time.
class EngineLogTest : public ::testing::Test {
 public:
  EngineLogTest() { engine->open(); }
  ~EngineLogTest() override {
    for (const auto& who : enrolled) engine->stop(who);
    executor->advance(1min);
    engine->close(0ns);
  }

 protected:
  std::shared_ptr<Enrolled> contend(std::string mutex) {
    Spec spec;
    spec.mutex = std::move(mutex);
    spec.label = "me";
    spec.goal = Goal::kKeep;
    spec.notify = [](const MutexState&) {};
    auto who = enrolled.emplace_back(engine->enroll(std::move(spec)));
    engine->start(who);
    executor->run();
    return who;
  }

  std::vector<std::string> lines;
  std::vector<std::shared_ptr<Enrolled>> enrolled;
  std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  std::shared_ptr<FaultyStore> store =
      std::make_shared<FaultyStore>(make_memory(executor->store_clock()));
  std::shared_ptr<Engine> engine = std::make_shared<Engine>(
      store, executor, EventHook{},
      [this](LogLevel, std::string_view line) { lines.emplace_back(line); });
};

TEST_F(EngineLogTest, AStoreThatIsDownIsALineAndThatItIsBackAnother) {
  store->go_down();
  contend("a");
  contend("b");
  executor->advance(30s);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("the store is down"), std::string::npos) << lines[0];
  store->heal();
  executor->advance(5s);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "the store answers again");
}

TEST_F(EngineLogTest, TheTroubleOfOneMutexNamesIt) {
  store->spoil("bad", Error(Errc::kCorrupt, "its row makes no sense"));
  contend("bad");
  contend("good");
  executor->advance(30s);
  EXPECT_EQ(lines, std::vector<std::string>{"'bad': its row makes no sense"});
}

// Nobody else says so to a service, which contends for ever.
TEST_F(EngineLogTest, ATokenBelowOneThatWasSeenIsALine) {
  store->alter([is_first = std::make_shared<bool>(true)](const Asked::Claimed&, Answer& answer) {
    // No renewal knows the first one.
    std::get<Observation>(answer).owner.token = std::exchange(*is_first, false) ? 1001 : 2;
  });
  const auto who = contend("report");
  executor->advance(30s);
  EXPECT_EQ(engine->phase(*who), Contention::Phase::kTrying);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("'report' with the token 2, but 1001 has been seen"), std::string::npos)
      << lines[0];
}

TEST_F(EngineLogTest, ARowThatStaysLockedNamesItsMutexAndSaysWhatToDo) {
  StoreTraits traits = store->traits();
  traits.blocked_advice = "look into the list of locks";
  store->set_traits(traits);
  contend("free");
  contend("locked");
  store->block("locked");
  executor->advance(7s);  // a renewal of both
  executor->advance(30s);
  EXPECT_EQ(lines,
            std::vector<std::string>{"'locked': somebody else seems to hold a lock on its row; "
                                     "look into the list of locks"});
}

// Another contender may be writing it just now.
TEST_F(EngineLogTest, ARowThatWasLockedForAMomentIsNoTrouble) {
  contend("free");
  contend("locked");
  store->block("locked");
  store->alter([&](const Asked::Claimed&, Answer&) { store->unblock("locked"); });
  executor->advance(30s);
  EXPECT_EQ(lines, std::vector<std::string>{});
}

TEST_F(EngineLogTest, AGrantThatIsAlwaysTooShortIsALineWithBothSpans) {
  store->alter([](const Asked::Claimed&, Answer& answer) {
    auto& seen = std::get<Observation>(answer);
    seen.owner.transition_at = std::min(seen.owner.transition_at, seen.now + 900ms);
  });
  const auto who = contend("short");
  executor->advance(30s);
  EXPECT_EQ(engine->phase(*who), Contention::Phase::kTrying);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("'short': memory grants leases of 900 ms"), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("the last 1160 ms"), std::string::npos) << lines[0];
}

TEST_F(EngineLogTest, OneShortGrantIsBadLuck) {
  store->alter([is_first = std::make_shared<bool>(true)](const Asked::Claimed&, Answer& answer) {
    auto& seen = std::get<Observation>(answer);
    if (std::exchange(*is_first, false)) seen.owner.transition_at = seen.now + 900ms;
  });
  const auto who = contend("short");
  executor->advance(2s);
  EXPECT_EQ(engine->phase(*who), Contention::Phase::kHolding);
  EXPECT_EQ(lines, std::vector<std::string>{});
}

}  // namespace
}  // namespace simba::core
