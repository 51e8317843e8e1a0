#include "stores/memory/lease_table.h"

#include <gtest/gtest.h>

#include <string>

namespace simba::memory {
namespace {

using namespace std::chrono_literals;

class LeaseTableTest : public ::testing::Test {
 protected:
  static Claim claim(std::string_view id, Token token = 0, std::string_view mutex = "report") {
    return {mutex, id, token, 0, 10s, 6s};
  }
  Observation take(std::string_view id) { return table.contend(claim(id), now); }
  Observation renew(std::string_view id, Token token) {
    return table.contend(claim(id, token), now);
  }
  void release(std::string_view id, Token token = 0) { table.release(claim(id, token)); }
  Observation see() const { return table.observe("report", now); }

  StoreTime now{1'000'000ms};
  LeaseTable table;
};

TEST_F(LeaseTableTest, AMutexNobodyEverTookBelongsToNobody) {
  EXPECT_EQ(see().owner, MutexOwner::none());
  EXPECT_EQ(see().now, now);
  EXPECT_TRUE(see().is_free());
}

TEST_F(LeaseTableTest, ATakeOfAFreeMutexWritesTheWholeLease) {
  const Observation seen = take("a~1");
  EXPECT_EQ(seen.owner.id, "a~1");
  EXPECT_EQ(seen.owner.acquired_at, now);
  EXPECT_EQ(seen.owner.ttl_at, now + 10s);
  EXPECT_EQ(seen.owner.transition_at, now + 16s);
  EXPECT_EQ(seen.owner.token, 1U);
  EXPECT_EQ(see().owner, seen.owner);
}

TEST_F(LeaseTableTest, NobodyElseTakesItBeforeItsTransitionHasEnded) {
  take("a~1");
  for (const milliseconds later : {1ms, 10'000ms, 16'000ms}) {
    const StoreTime before = now;
    now += later;
    EXPECT_EQ(take("b~1").owner.id, "a~1") << later.count();
    now = before;
  }
  now += 16s + 1ms;
  EXPECT_EQ(take("b~1").owner.id, "b~1");
}

TEST_F(LeaseTableTest, ALostTakeChangesNothing) {
  const MutexOwner before = take("a~1").owner;
  now += 1s;
  take("b~1");
  EXPECT_EQ(see().owner, before);
}

TEST_F(LeaseTableTest, ARepeatedTakeKeepsItsTokenAndBeginsANewLease) {
  take("a~1");
  now += 3s;
  const Observation seen = take("a~1");
  EXPECT_EQ(seen.owner.token, 1U);
  EXPECT_EQ(seen.owner.ttl_at, now + 10s);
  EXPECT_EQ(seen.owner.transition_at, now + 16s);
}

TEST_F(LeaseTableTest, ARenewalExtendsTheLeaseUnderTheSameToken) {
  take("a~1");
  const StoreTime acquired = now;
  now += 15s;
  const Observation seen = renew("a~1", 1);
  EXPECT_EQ(seen.owner.transition_at, now + 16s);
  EXPECT_EQ(seen.owner.token, 1U);
  EXPECT_EQ(seen.owner.acquired_at, acquired);
}

TEST_F(LeaseTableTest, Original09ARenewalExtendsByTtlAndTransition) {
  take("a~1");
  now += 9s;
  renew("a~1", 1);
  EXPECT_EQ(see().owner.transition_at - now, 16s);
}

TEST_F(LeaseTableTest, RedlockRb36ARenewalOfAnExpiredLeaseIsNotAccepted) {
  take("a~1");
  now += 16s + 1ms;
  const Observation seen = renew("a~1", 1);
  EXPECT_TRUE(seen.is_free());
  EXPECT_TRUE(see().is_free());
}

TEST_F(LeaseTableTest, ARenewalNeverCreatesAndNeverTakes) {
  EXPECT_EQ(renew("a~1", 1).owner, MutexOwner::none());
  EXPECT_TRUE(table.list("", {}, 10, now).empty());
  take("a~1");
  release("a~1");
  renew("a~1", 1);
  EXPECT_TRUE(see().is_free());
}

TEST_F(LeaseTableTest, ARenewalMatchesOnlyItsIdAndItsToken) {
  const MutexOwner before = take("a~1").owner;
  now += 1s;
  renew("a~1", 2);
  renew("b~1", 1);
  renew("A~1", 1);
  renew("a~1 ", 1);
  EXPECT_EQ(see().owner, before);
}

TEST_F(LeaseTableTest, AReleaseFreesAtOnceAndKeepsTheToken) {
  take("a~1");
  release("a~1");
  EXPECT_TRUE(see().is_free());
  EXPECT_EQ(see().owner.id, "");
  EXPECT_EQ(see().owner.token, 1U);
  EXPECT_EQ(take("b~1").owner.token, 2U);
}

TEST_F(LeaseTableTest, AReleaseTouchesNobodyElse) {
  const MutexOwner before = take("a~1").owner;
  release("b~1");
  release("a~2");
  release("");
  release("a~1", 9);
  table.release(claim("a~1", 0, "other"));
  EXPECT_EQ(see().owner, before);
}

TEST_F(LeaseTableTest, AReleaseOfNobodysMutexDoesNothing) {
  release("a~1");
  EXPECT_EQ(see().owner, MutexOwner::none());
  EXPECT_TRUE(table.list("", {}, 10, now).empty());
}

TEST_F(LeaseTableTest, TokensGrowFromTermToTerm) {
  Token last = 0;
  for (int i = 0; i < 10; ++i) {
    const Token token = take("a~" + std::to_string(i)).owner.token;
    EXPECT_GT(token, last);
    last = token;
    if (i % 2 == 0) {
      release("a~" + std::to_string(i));
    } else {
      now += 1min;
    }
  }
}

TEST_F(LeaseTableTest, ATokenIsAboveTheHighestTheClientHasSeen) {
  Claim with_floor = claim("a~1");
  with_floor.floor = 41;
  EXPECT_EQ(table.contend(with_floor, now).owner.token, 42U);
  now += 1min;
  EXPECT_EQ(take("b~1").owner.token, 43U);
}

TEST_F(LeaseTableTest, AnEvictedOwnerLosesItsNameButNotTheEndOfItsLease) {
  take("a~1");
  const StoreTime end = now + 16s;
  const Observation seen = table.evict("report", "a~1", 1, Eviction::kKeepLease, now);
  EXPECT_EQ(seen.owner.id, "");
  EXPECT_EQ(seen.owner.transition_at, end);
  EXPECT_EQ(renew("a~1", 1).owner.id, "");
  EXPECT_EQ(take("a~1").owner.id, "");
  now = end;
  EXPECT_EQ(take("b~1").owner.id, "");
  now += 1ms;
  EXPECT_EQ(take("b~1").owner.token, 2U);
}

TEST_F(LeaseTableTest, AnEvictionCanFreeAtOnce) {
  take("a~1");
  EXPECT_TRUE(table.evict("report", "a~1", 1, Eviction::kFreeNow, now).is_free());
  EXPECT_EQ(take("b~1").owner.token, 2U);
}

TEST_F(LeaseTableTest, AnEvictionIsOfExactlyTheTermThatWasSeen) {
  const MutexOwner before = take("a~1").owner;
  EXPECT_EQ(table.evict("report", "a~1", 2, Eviction::kFreeNow, now).owner, before);
  EXPECT_EQ(table.evict("report", "b~1", 1, Eviction::kFreeNow, now).owner, before);
  EXPECT_EQ(table.evict("nothing", "a~1", 1, Eviction::kFreeNow, now).owner, MutexOwner::none());
  EXPECT_EQ(see().owner, before);
}

TEST_F(LeaseTableTest, ListsByPrefixInOrderUpToTheLimit) {
  for (const char* mutex : {"b/2", "a", "b/1", "b", "c"})
    table.contend(claim("x~1", 0, mutex), now);
  const auto names = [&](std::string_view prefix, std::size_t limit) {
    std::string out;
    for (const Listed& listed : table.list(prefix, {}, limit, now)) out += listed.mutex + ' ';
    return out;
  };
  EXPECT_EQ(names("", 10), "a b b/1 b/2 c ");
  EXPECT_EQ(names("b", 10), "b b/1 b/2 ");
  EXPECT_EQ(table.list("b", "b", 10, now).size(), 2U) << "behind a name";
  EXPECT_EQ(table.list("b", "a", 10, now).size(), 3U) << "which is in front of all";
  EXPECT_TRUE(table.list("b", "c", 10, now).empty());
  EXPECT_EQ(names("b", 2), "b b/1 ");
  EXPECT_EQ(names("z", 10), "");
}

TEST_F(LeaseTableTest, NamesAreComparedByteByByte) {
  take("a~1");
  for (const char* other : {"Report", "REPORT", "report ", " report"}) {
    EXPECT_TRUE(table.observe(other, now).is_free());
    EXPECT_EQ(table.contend(claim("b~1", 0, other), now).owner.id, "b~1");
  }
}

TEST_F(LeaseTableTest, ACopyIsIndependent) {
  LeaseTable copy = table;
  take("a~1");
  EXPECT_TRUE(copy.observe("report", now).is_free());
}

}  // namespace
}  // namespace simba::memory
