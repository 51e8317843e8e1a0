#include "torture/call_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "simba/memory.h"
#include "testing/faulty_store.h"
#include "testing/servers/directory.h"
#include "torture/recording_store.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

class CallLogTest : public ::testing::Test {
 protected:
  Claim take(std::string_view id) const { return {"m", id, 0, 0, 2'000ms, 1'000ms}; }
  LocalTime soon() const { return BootClock::now() + 5s; }
  std::vector<Call> noted() const { return CallLog(file_).read(3); }

  const servers::Directory directory_;
  const std::filesystem::path file_ = directory_.path() / "calls";
  const std::shared_ptr<testing::FaultyStore> inner_ =
      std::make_shared<testing::FaultyStore>(make_memory());
  RecordingStore store_{inner_, std::make_shared<CallLog>(file_),
                        std::make_shared<ErrorLog>(directory_.path() / "errors")};
};

TEST_F(CallLogTest, EachClaimIsNotedWithItsAnswer) {
  const Claim ann = take("ann"), bob = take("bob");
  const LocalTime before = BootClock::now();
  const Answers first = store_.contend({&ann, 1}, soon());
  const Token token = std::get<Observation>(first[0]).owner.token;
  store_.contend({&bob, 1}, soon());
  const Claim renewal{"m", "ann", token, 0, 2'000ms, 1'000ms};
  store_.contend({&renewal, 1}, soon());
  store_.release({&renewal, 1}, soon());
  const std::string_view name = "m";
  store_.observe({&name, 1}, soon());
  const auto calls = noted();
  ASSERT_EQ(calls.size(), 5U);
  for (const Call& call : calls) {
    EXPECT_EQ(call.mutex, hash_of("m"));
    EXPECT_EQ(call.client, 3);
    EXPECT_GE(call.before, before);
    EXPECT_GE(call.after, call.before);
  }
  EXPECT_TRUE(calls[0].is_granted());
  EXPECT_EQ(calls[0].owner_token, token);
  EXPECT_EQ(calls[0].lease, 3s);
  EXPECT_EQ(calls[0].left, 3s);
  EXPECT_EQ(calls[1].kind, Call::Kind::kTake);
  EXPECT_EQ(calls[1].owner, hash_of("ann"));
  EXPECT_FALSE(calls[1].is_granted());
  EXPECT_EQ(calls[2].kind, Call::Kind::kRenew);
  EXPECT_TRUE(calls[2].is_granted());
  EXPECT_EQ(calls[3].answer, Call::Answer::kDone);
  EXPECT_EQ(calls[4].answer, Call::Answer::kFree);
  EXPECT_EQ(find_order(calls, {}).verdict, Order::Verdict::kFound);
}

TEST_F(CallLogTest, AnEvictionIsNoted) {
  const Claim ann = take("ann");
  const Token token = std::get<Observation>(store_.contend({&ann, 1}, soon())[0]).owner.token;
  store_.evict("m", "ann", token, Eviction::kKeepLease, soon());
  store_.evict("m", "ann", token, Eviction::kFreeNow, soon());
  const auto calls = noted();
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[1].kind, Call::Kind::kEvict);
  EXPECT_EQ(calls[1].answer, Call::Answer::kNameless);
  EXPECT_EQ(calls[2].kind, Call::Kind::kEvictFree);
}

TEST_F(CallLogTest, ACallThatThrewMayHaveHappened) {
  inner_->fail_after(Error(Errc::kTimeout, "the answer was lost"));
  const Claim ann = take("ann");
  EXPECT_THROW(store_.contend({&ann, 1}, soon()), Error);
  inner_->block("m");
  store_.contend({&ann, 1}, soon());
  const auto calls = noted();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].answer, Call::Answer::kNone);
  EXPECT_EQ(calls[1].answer, Call::Answer::kBlocked);
}

TEST_F(CallLogTest, WhatWasUnderWayWhenItsProcessWasKilledIsThere) {
  const pid_t child = fork();
  if (child == 0) {
    CallLog log(file_);
    Call call;
    call.id = 7;
    call.before = BootClock::now();
    log.begin(call);
    raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto calls = noted();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].id, 7U);
  EXPECT_EQ(calls[0].answer, Call::Answer::kNone);
}

TEST_F(CallLogTest, ThatIsFullSaysSinceWhen) {
  CallLog log(file_);
  Call call;
  for (std::size_t i = 0; i < CallLog::kCapacity; ++i) {
    call.before = LocalTime{nanoseconds{static_cast<int>(i) + 1}};
    ASSERT_NE(log.begin(call), CallLog::kNoRoom);
  }
  EXPECT_EQ(log.full_since(), LocalTime::max());
  call.before = LocalTime{1s};
  EXPECT_EQ(log.begin(call), CallLog::kNoRoom);
  log.end(CallLog::kNoRoom, call);
  call.before = LocalTime{2s};
  EXPECT_EQ(log.begin(call), CallLog::kNoRoom);
  EXPECT_EQ(log.full_since(), LocalTime{1s});
  EXPECT_EQ(log.read(0).size(), CallLog::kCapacity);
}

TEST_F(CallLogTest, TheStoreIsAskedAsItWouldBe) {
  EXPECT_EQ(store_.traits().name, inner_->traits().name);
  EXPECT_THROW(store_.check_mutex(""), Error);
  int wakes = 0;
  const auto watch = store_.watch("m", {}, [&wakes] { ++wakes; });
  inner_->hint("m");
  EXPECT_EQ(wakes, 1);
  inner_->end_hints();
  EXPECT_FALSE(watch->is_live());
  EXPECT_TRUE(store_.list("", "", 10, soon()).empty());
  const Claim ann = take("ann");
  const LocalTime deadline = soon();
  store_.contend({&ann, 1}, deadline);
  EXPECT_EQ(inner_->asked().back().deadline, deadline);
}

}  // namespace
}  // namespace simba::torture
