#include "simba/lock_manager.h"
#include "stores/mongodb/mongodb_fixture.h"

// Documents as the Java reference of the article writes them, and ours: each excludes the other.
namespace simba::mongodb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MongodbJavaTest : public MongodbTest {
 protected:
  static constexpr const char* kJava = "88968b03-a40e-4f9f-8727-e16523feedb7";

  std::int64_t server_now() const {
    return observe(*open(), "clock").now.time_since_epoch().count();
  }
  static std::string fields(const std::string& owner, std::int64_t ttl, std::int64_t expires) {
    return R"("ownerId": ")" + owner + R"(", "ttlMs": {"$numberLong": ")" + std::to_string(ttl) +
           R"("}, "expiresAt": {"$numberLong": ")" + std::to_string(expires) + R"("})";
  }
  // insertOne, then findOneAndUpdate where the document is there: what tryLock() does.
  bool java_locks(const std::string& id, std::int64_t ttl, const std::string& owner = kJava) const {
    const std::int64_t now = server_now();
    const std::string inserted = command(R"({"insert": "$C", "documents": [{"_id": ")" + id +
                                         R"(", )" + fields(owner, ttl, now + ttl) + "}]}");
    if (inserted.find("\"n\" : 1") != inserted.npos) return true;
    EXPECT_THAT(inserted, HasSubstr("11000"));
    const std::string found =
        command(R"({"findAndModify": "$C", "query": {"_id": ")" + id +
                R"(", "$or": [{"expiresAt": {"$lt": {"$numberLong": ")" + std::to_string(now) +
                R"("}}}, {"ownerId": ")" + owner + R"("}]}, "update": {"$set": {)" +
                fields(owner, ttl, now + ttl) + R"(}}, "new": true})");
    return found.find("\"ownerId\" : \"" + owner) != found.npos;
  }
  // What its heartbeat does to all that it believes to hold, whoever has it by now.
  void java_beats(const std::string& id) const {
    command(R"({"update": "$C", "updates": [{"q": {"_id": {"$in": [")" + id +
            R"("]}}, "u": [{"$set": {"expiresAt": {"$add": [{"$numberLong": ")" +
            std::to_string(server_now()) + R"("}, "$ttlMs"]}}}], "multi": true}]})");
  }
  // Until then it is put off again and again.
  bool eventually_while_java_beats(const std::string& id, const std::function<bool()>& done) const {
    return eventually([&] {
      java_beats(id);
      return done();
    });
  }
  void java_unlocks(const std::string& id, const std::string& owner = kJava) const {
    command(R"({"delete": "$C", "deletes": [{"q": {"_id": ")" + id + R"(", "ownerId": ")" + owner +
            R"("}, "limit": 1}]})");
  }
};

TEST_F(MongodbJavaTest, WhatJavaHoldsIsNotTakenAndItsReleaseWakesUs) {
  ASSERT_TRUE(java_locks("L1", 60'000));
  const auto store = open();
  const Observation seen = take(*store, "L1", "a~1");
  EXPECT_EQ(seen.owner.id, kJava);
  EXPECT_FALSE(seen.is_free());
  EXPECT_EQ(seen.owner.token, 0U) << "a term that raises no token";
  EXPECT_FALSE(seen.owner.ttl_at);
  std::atomic<int> wakes{0};
  const auto watch = store->watch("L1", {}, [&] { ++wakes; });
  const Client client(store);
  Contender waiter(client, "L1", lease(20s, 10s));
  ASSERT_FALSE(eventually([&] { return waiter.is_owner(); }, 500ms));
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  wakes = 0;
  java_unlocks("L1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }));
  EXPECT_GT(waiter.token(), 0U);
}

TEST_F(MongodbJavaTest, WhatWeHoldIsNotTakenByJavaUntilWeLetGo) {
  const auto store = open();
  const Observation held = take(*store, "L1", "a~1");
  EXPECT_FALSE(java_locks("L1", 60'000));
  renew(*store, "L1", "a~1", held.owner.token);
  EXPECT_FALSE(java_locks("L1", 60'000));
  EXPECT_EQ(observe(*store, "L1").owner.id, "a~1");
  release(*store, "L1", "a~1");
  EXPECT_TRUE(java_locks("L1", 60'000));
  EXPECT_EQ(take(*store, "L1", "b~1").owner.id, kJava);
}

// Its owner keeps its id from lock to lock, so it may hold the mutex again by the time we write.
TEST_F(MongodbJavaTest, TheHeartbeatLeavesTheNamesOfJavaAlone) {
  ASSERT_TRUE(java_locks("L1", 1));
  const auto store = open();
  take(*store, "L2", "a~1");
  observed(contend(*store, {"L3", "a~1", 0, 0, 1ms, 0ms}));
  ASSERT_TRUE(eventually(
      [&] { return observe(*store, "L1").is_free() && observe(*store, "L3").is_free(); }));
  const Client client(store);
  EXPECT_EQ(LockManager::of(client).beat().cleared, 1U) << "L3";
  EXPECT_EQ(observe(*store, "L1").owner.id, kJava);
  EXPECT_EQ(observe(*store, "L3").owner.id, "");
}

TEST_F(MongodbJavaTest, OurFieldsAreNotBelievedOnceJavaHasTakenOver) {
  const auto store = open();
  const Claim brief{"L1", "a~1", 0, 0, 200ms, 100ms};
  const Token token = observed(contend(*store, brief)).owner.token;
  ASSERT_TRUE(eventually([&] { return observe(*store, "L1").is_free(); }));
  ASSERT_TRUE(java_locks("L1", 60'000));
  ASSERT_THAT(document("L1"), HasSubstr(R"("wireId" : "a~1")")) << "left behind";
  const Observation seen = renew(*store, "L1", "a~1", token);
  EXPECT_EQ(seen.owner.id, kJava);
  EXPECT_EQ(seen.owner.token, 0U);
  EXPECT_FALSE(seen.owner.ttl_at || seen.owner.acquired_at);
  release(*store, "L1", "a~1", token);
  EXPECT_EQ(observe(*store, "L1").owner.id, kJava);
  java_unlocks("L1");
  EXPECT_GT(take(*store, "L1", "b~1").owner.token, token);
}

// A JVM that was paused knows nothing of our take-over: its heartbeat goes on.
TEST_F(MongodbJavaTest, ADeadOwnersLeaseEndsWhileJavaPutsItOff) {
  const auto store = open();
  const Claim brief{"L1", "a~1", 0, 0, 1s, 500ms};
  const Observation held = observed(contend(*store, brief));
  java_beats("L1");
  EXPECT_EQ(observe(*store, "L1").owner.transition_at, held.owner.transition_at);
  ASSERT_TRUE(eventually_while_java_beats(
      "L1", [&] { return take(*store, "L1", "b~1").owner.id == "b~1"; }));
  const Observation next = observe(*store, "L1");
  EXPECT_GT(next.owner.token, held.owner.token);
  EXPECT_GE(next.now, held.owner.transition_at);
  java_beats("L1");
  EXPECT_EQ(renew(*store, "L1", "b~1", next.owner.token).owner.token, next.owner.token);
  EXPECT_EQ(take(*store, "L1", "c~1").owner.id, "b~1") << "nor does it end early";
}

TEST_F(MongodbJavaTest, NoRenewalRevivesALeaseThatJavaHasPutOff) {
  const auto store = open();
  std::vector<Claim> claims{{"L1", "a~1", 0, 0, 200ms, 100ms}, {"L2", "a~2", 0, 0, 200ms, 100ms}};
  for (Claim& claim : claims) claim.token = observed(contend(*store, claim)).owner.token;
  ASSERT_TRUE(eventually([&] { return observe(*store, "L2").is_free(); }));
  const auto put_off = [&] {
    for (const char* id : {"L1", "L2"}) {
      command(R"({"update": "$C", "updates": [{"q": {"_id": ")" + std::string(id) +
              R"("}, "u": {"$inc": {"expiresAt": 60000}}}]})");
    }
  };
  put_off();
  EXPECT_TRUE(observed(contend(*store, claims[0])).is_free());
  for (const Answer& each : store->contend(claims, soon())) EXPECT_TRUE(observed(each).is_free());
  // The same wire id has a new term then.
  EXPECT_GT(take(*store, "L1", "a~1").owner.token, claims[0].token);
}

TEST_F(MongodbJavaTest, AnEvictedOwnersLeaseEndsWhileJavaPutsItOffAndJavasOwnLasts) {
  const auto store = open();
  const Claim brief{"L1", "a~1", 0, 0, 500ms, 500ms};
  const Observation held = observed(contend(*store, brief));
  store->evict("L1", "a~1", held.owner.token, Eviction::kKeepLease, soon());
  java_beats("L1");
  EXPECT_EQ(observe(*store, "L1").owner.transition_at, held.owner.transition_at);
  ASSERT_TRUE(eventually_while_java_beats("L1", [&] { return observe(*store, "L1").is_free(); }));
  // What we left behind in its document says nothing of its lease.
  ASSERT_TRUE(eventually([&] { return java_locks("L1", 60'000); }));
  ASSERT_THAT(document("L1"), HasSubstr("renewedAt"));
  java_beats("L1");
  const StoreTime end = observe(*store, "L1").owner.transition_at;
  EXPECT_THAT(document("L1"),
              HasSubstr(R"("expiresAt" : )" + std::to_string(end.time_since_epoch().count())));
  store->evict("L1", kJava, 0, Eviction::kKeepLease, soon());
  EXPECT_EQ(observe(*store, "L1").owner.id, "");
  EXPECT_EQ(observe(*store, "L1").owner.transition_at, end);
  EXPECT_EQ(take(*store, "L1", "b~1").owner.id, "");
}

// The reference keeps a document that no lock has.
TEST_F(MongodbJavaTest, TheDocumentThatIsNoLockIsLeftAlone) {
  command(R"({"insert": "$C", "documents": [{"_id": 0,
      "expiresAt": {"$numberLong": "9223372036854775807"}}]})");
  const auto store = open();
  take(*store, "L1", "a~1");
  const std::vector<Listed> all = store->list("", "", 10, soon());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].mutex, "L1");
  const Client client(store);
  EXPECT_FALSE(LockManager::of(client).beat().trouble);
  std::atomic<int> wakes{0};
  const auto watch = store->watch("L1", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  command(R"({"update": "$C", "updates": [{"q": {"_id": 0}, "u": {"$set": {"ownerId": ""}}}]})");
  wakes = 0;
  release(*store, "L1", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
  EXPECT_TRUE(watch->is_live());
  EXPECT_THAT(command(R"({"find": "$C", "filter": {"_id": 0}})"), HasSubstr("9223372036854775807"));
}

TEST_F(MongodbJavaTest, AnExpiredDocumentOfJavaIsTakenOverAndItsCleanUpHarmsNobody) {
  ASSERT_TRUE(java_locks("L1", 300));
  const auto store = open();
  ASSERT_TRUE(eventually([&] { return take(*store, "L1", "a~1").owner.id == "a~1"; }));
  // Java's clean-up deletes what has expired, and nothing else.
  command(R"({"delete": "$C", "deletes": [{"q": {"expiresAt": {"$lt": {"$numberLong": ")" +
          std::to_string(server_now()) + R"("}}}, "limit": 0}]})");
  EXPECT_EQ(observe(*store, "L1").owner.id, "a~1");
  java_unlocks("L1");
  EXPECT_EQ(observe(*store, "L1").owner.id, "a~1");
}

TEST_F(MongodbJavaTest, APlaceholderLooksExpiredToJava) {
  const auto store = open();
  take(*store, "L1", "a~1");
  release(*store, "L1", "a~1");
  EXPECT_TRUE(java_locks("L1", 60'000));
  EXPECT_THAT(document("L1"), Not(HasSubstr(R"("ownerId" : "")")));
}

TEST_F(MongodbJavaTest, AnEvictedOwnersLeaseKeepsJavaOutToo) {
  const auto store = open();
  const Observation held = take(*store, "L1", "a~1");
  store->evict("L1", "a~1", held.owner.token, Eviction::kKeepLease, soon());
  EXPECT_FALSE(java_locks("L1", 60'000));
  const Observation seen = take(*store, "L1", "b~1");
  EXPECT_EQ(seen.owner.id, "");
  EXPECT_EQ(seen.owner.transition_at, held.owner.transition_at);
}

}  // namespace
}  // namespace simba::mongodb
