#include <mongoc/mongoc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <thread>

#include "stores/mongodb/mongodb_fixture.h"

// What this store does beyond the contract, on a healthy server.
namespace simba::mongodb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class MongodbStoreTest : public MongodbTest {
 protected:
  static std::string order(int i) { return "order-" + std::to_string(10'000 + i); }
};

TEST_F(MongodbStoreTest, ADocumentHasTheFourFieldsWithTheirTypesAndMeaning) {
  const auto store = open();
  const Observation held = take(*store, "L1", "a~1");
  const std::string found = document("L1");
  EXPECT_THAT(found, HasSubstr(R"("_id" : "L1")"));
  EXPECT_THAT(found, HasSubstr(R"("ownerId" : "a~1")"));
  EXPECT_THAT(found, HasSubstr(R"("ttlMs" : 30000)"));
  const auto expires = std::to_string(held.owner.transition_at.time_since_epoch().count());
  EXPECT_THAT(found, HasSubstr(R"("expiresAt" : )" + expires));
  EXPECT_THAT(command(R"({"aggregate": "$C", "cursor": {}, "pipeline": [{"$project": {
                "t": {"$type": "$expiresAt"}, "m": {"$type": "$ttlMs"}}}]})"),
              AllOf(HasSubstr(R"("t" : "long")"), HasSubstr(R"("m" : "long")")));
  EXPECT_EQ(held.owner.transition_at - held.now, 30s);
  release(*store, "L1", "a~1");
  EXPECT_THAT(document("L1"), AllOf(HasSubstr(R"("ownerId" : "")"), HasSubstr(R"("ttlMs" : 0)"),
                                    HasSubstr(R"("expiresAt" : 0)")));
  EXPECT_EQ(observe(*store, "L1").owner.token, held.owner.token);
}

TEST_F(MongodbStoreTest, TimesAreTheServers) {
  const auto store = open();
  const StoreTime before = observe(*store, "nobody").now;
  const Observation held = take(*store, "L1", "a~1");
  EXPECT_GE(held.now, before);
  EXPECT_LT(held.now, before + 1min);
}

// Of which one answer has room for half.
TEST_F(MongodbStoreTest, AListIsWholeHoweverLongItsNamesAre) {
  constexpr std::size_t kNames = 12'000;
  const auto store = open();
  take(*store, "a", "a~1");
  command(R"({"aggregate": "$C", "cursor": {}, "pipeline": [
    {"$project": {"n": {"$range": [0, )" +
          std::to_string(kNames) + R"(]}}}, {"$unwind": "$n"},
    {"$project": {"_id": {"$concat": [")" +
          std::string(2'400, 'x') + R"(", {"$toString": {"$add": [10000, "$n"]}}]},
                  "ownerId": "b~1", "ttlMs": {"$literal": 1}, "expiresAt": {"$literal": 1}}},
    {"$merge": ")" +
          collection + R"("}]})");
  const std::vector<Listed> all = store->list({}, {}, 2 * kNames, BootClock::now() + 60s);
  ASSERT_EQ(all.size(), kNames + 1);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const Listed& one, const Listed& other) {
    return one.mutex < other.mutex;
  }));
  EXPECT_EQ(store->list("x", {}, kNames - 1, BootClock::now() + 60s).size(), kNames - 1);
  EXPECT_THAT(servers::run_mongodb_command(server(), R"({"aggregate": 1, "cursor": {}, "pipeline": [
      {"$currentOp": {"idleCursors": true}},
      {"$match": {"type": "idleCursor", "ns": ")" + database +
                                                         "." + collection + R"("}}]})"),
              HasSubstr(R"("firstBatch" : [  ])"))
      << "a cursor was left open";
}

TEST_F(MongodbStoreTest, ABatchIsTakenRenewedAndReleasedTogether) {
  constexpr int kMany = 1'000;
  const auto store = open();
  std::vector<std::string> names, ids;
  for (int i = 0; i < kMany; ++i) {
    names.push_back(order(i));
    ids.push_back("a~" + std::to_string(i));
  }
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < kMany; ++i) claims.push_back({names[i], ids[i], 0, 0, 20s, 10s});
  const Answers taken = store->contend(claims, BootClock::now() + 60s);
  for (std::size_t i = 0; i < kMany; ++i) {
    const Observation seen = observed(taken[i]);
    ASSERT_EQ(seen.owner.id, ids[i]);
    claims[i].token = seen.owner.token;
    claims[i].ttl = i % 2 == 0 ? 40s : 50s;  // two leases in one batch
  }
  const Answers renewed = store->contend(claims, BootClock::now() + 60s);
  for (std::size_t i = 0; i < kMany; ++i) {
    const Observation seen = observed(renewed[i]);
    ASSERT_EQ(seen.owner.id, ids[i]);
    ASSERT_EQ(seen.owner.token, claims[i].token);
    ASSERT_EQ(seen.owner.transition_at - seen.now, claims[i].ttl + 10s);
  }
  EXPECT_THAT(document(names[0]), HasSubstr(R"("ttlMs" : 50000)"));
  EXPECT_THAT(document(names[1]), HasSubstr(R"("ttlMs" : 60000)"));
  for (const Answer& each : store->release(claims, BootClock::now() + 60s)) observed(each);
  EXPECT_TRUE(observe(*store, names[0]).is_free() && observe(*store, names[999]).is_free());
}

TEST_F(MongodbStoreTest, OfABatchOfRenewalsOnlyTheLostOneIsToldSo) {
  const auto store = open();
  const std::vector<std::string> names{"a", "b", "c"}, ids{"x~a", "x~b", "x~c"};
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < 3; ++i) {
    claims.push_back({names[i], ids[i], take(*store, names[i], ids[i]).owner.token, 0, 20s, 10s});
  }
  release(*store, "b", "x~b");
  take(*store, "b", "y~b");
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~a");
  EXPECT_EQ(observed(answers[0]).owner.token, claims[0].token);
  EXPECT_EQ(observed(answers[1]).owner.id, "y~b");
  EXPECT_EQ(observed(answers[2]).owner.id, "x~c");
}

TEST_F(MongodbStoreTest, ABatchOfRenewalsRevivesNoLeaseThatIsOver) {
  const auto store = open();
  const Claim brief{"a", "x~a", 0, 0, 100ms, 50ms};
  const Token over = observed(contend(*store, brief)).owner.token;
  const Token runs = take(*store, "b", "x~b").owner.token;
  ASSERT_TRUE(eventually([&] { return observe(*store, "a").is_free(); }));
  const std::vector<Claim> claims{{"a", "x~a", over, 0, 20s, 10s}, {"b", "x~b", runs, 0, 20s, 10s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_TRUE(observed(answers[0]).is_free());
  EXPECT_FALSE(observed(answers[1]).is_free());
  EXPECT_TRUE(observe(*store, "a").is_free());
}

TEST_F(MongodbStoreTest, ADeletedDocumentDoesNotResetTheToken) {
  const auto store = open();
  const Token first = take(*store, "L1", "a~1").owner.token;
  command(R"({"delete": "$C", "deletes": [{"q": {"_id": "L1"}, "limit": 1}]})");
  const Token next = take(*store, "L1", "b~1").owner.token;
  EXPECT_GT(next, first) << "the server's time is in it";
  command(R"({"delete": "$C", "deletes": [{"q": {"_id": "L1"}, "limit": 1}]})");
  const Token far = next + 1'000'000'000'000;  // as if the server's clock had been set back
  EXPECT_GT(take(*store, "L1", "c~1", far).owner.token, far);
}

TEST_F(MongodbStoreTest, ADocumentThatMakesNoSenseIsCorruptAndHarmsNoNeighbour) {
  const auto store = open();
  command(R"({"insert": "$C", "documents": [
    {"_id": "number", "ownerId": 7, "ttlMs": 1, "expiresAt": 1},
    {"_id": "text", "ownerId": "x", "ttlMs": 1, "expiresAt": "soon"},
    {"_id": "odd", "ownerId": "x", "ttlMs": 1, "expiresAt": 1, "wireId": "x", "renewedAt": "then"},
    {"_id": "full", "ownerId": "", "ttlMs": 0, "expiresAt": 0,
     "token": {"$numberLong": "9223372036854775807"}}]})");
  const std::vector<std::string_view> names{"good", "number", "text"};
  take(*store, "good", "a~1");
  const Answers seen = store->observe(names, soon());
  EXPECT_EQ(observed(seen[0]).owner.id, "a~1");
  for (const std::size_t i : {1U, 2U}) {
    ASSERT_TRUE(std::holds_alternative<Error>(seen[i]));
    EXPECT_EQ(std::get<Error>(seen[i]).errc(), Errc::kCorrupt);
  }
  EXPECT_THAT(error_of([&] { take(*store, "text", "a~1"); }), HasSubstr("expiresAt"));
  EXPECT_THAT(error_of([&] { take(*store, "full", "a~1"); }), HasSubstr("end of its range"));
  EXPECT_EQ(take(*store, "odd", "a~1").owner.id, "a~1") << "the four fields are in order";
}

TEST_F(MongodbStoreTest, WorksOnAPoolOfTheUser) {
  mongoc_init();
  mongoc_uri_t* uri = mongoc_uri_new(server().c_str());
  mongoc_client_pool_t* pool = mongoc_client_pool_new(uri);
  {
    MongodbOptions own = options();
    own.uri.clear();
    own.pool = pool;
    const auto store = open_mongodb(own);
    std::atomic<int> wakes{0};
    const auto watch = store->watch("L1", {}, [&] { ++wakes; });
    const Observation held = take(*store, "L1", "a~1");
    EXPECT_EQ(held.owner.id, "a~1");
    EXPECT_EQ(take(*open(), "L1", "b~1").owner.id, "a~1");
    EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
    wakes = 0;
    release(*open(), "L1", "a~1");
    EXPECT_TRUE(eventually([&] { return wakes > 0; }));
    take(*open(), "L2", "b~2");
    Client client(open_mongodb(own));
    const Contender waiter(client, "L2", steady_lease());
    EXPECT_TRUE(eventually([&] { return client.observe("L2").owner.id == "b~2"; }));
  }
  EXPECT_EQ(log.count("is not back"), 0U);
  mongoc_client_pool_destroy(pool);
  mongoc_uri_destroy(uri);
}

TEST_F(MongodbStoreTest, TheConcernsOfAUsersPoolAreNotAsked) {
  mongoc_init();
  for (const char* level : {"local", "majority", "linearizable"}) {
    MongodbOptions own = options(std::string("w=1&readConcernLevel=") + level);
    mongoc_uri_t* uri = mongoc_uri_new(own.uri.c_str());
    mongoc_client_pool_t* pool = mongoc_client_pool_new(uri);
    {
      own.pool = pool;
      const auto store = open_mongodb(own);
      const auto watch = store->watch("L1", {}, [] {});
      const std::string id = std::string("a~") + level;
      EXPECT_EQ(error_of([&] {
                  take(*store, "L1", id);
                  EXPECT_EQ(observe(*store, "L1").owner.id, id);
                  release(*store, "L1", id);
                }),
                "none")
          << level;
      EXPECT_TRUE(eventually([&] { return watch->is_live(); }, 10s)) << level;
    }
    mongoc_client_pool_destroy(pool);
    mongoc_uri_destroy(uri);
  }
}

TEST_F(MongodbStoreTest, IsDeadInAForkedChildAndUnharmedInTheParent) { expect_fork_safe(open()); }

// A thread of its own closes the driver's clients, for half a second.
TEST_F(MongodbStoreTest, NoThreadThatItLeavesBehindTakesASignal) {
  const auto threads = [] {
    namespace fs = std::filesystem;
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  };
  static std::atomic<int> taken;
  taken = 0;
  std::signal(SIGUSR1, [](int) { ++taken; });
  const auto before = threads();
  auto store = open();
  take(*store, "L1", "a~1");
  store.reset();
  // Only now, because that thread has begun with this one's mask.
  sigset_t ours, pending;
  sigemptyset(&ours);
  sigaddset(&ours, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  kill(getpid(), SIGUSR1);
  ASSERT_TRUE(eventually([&] { return threads() <= before; })) << "some are left";
  EXPECT_EQ(taken, 0);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR1), 1) << "nobody but the user may take it";
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

TEST_F(MongodbStoreTest, OnlyWhatMayBeFreeWakes) {
  const auto store = open("appName=waiter"), other = open("appName=owner");
  std::atomic<int> wakes{0}, others{0};
  const auto watch = store->watch("L1", {}, [&] { ++wakes; });
  const auto its_neighbour = store->watch("L2", {}, [&] { ++others; });
  ASSERT_TRUE(eventually([&] { return watch->is_live() && wakes > 0 && others > 0; }));
  // One stream tells of both, in order: nothing from before is on its way any more.
  const auto catch_up = [&] {
    const int before = others;
    take(*other, "L2", "a~2");
    release(*other, "L2", "a~2");
    return eventually([&] { return others > before; });
  };
  const auto outages = [&] { return log.count("waiters poll until this is over"); };
  // A stream that was lost on a busy machine hints at everything once it is back: once more then.
  std::size_t before = outages() + 1;
  for (int round = 0; round < 5 && outages() != before; ++round) {
    before = outages();
    wakes = 0;
    const Observation held = take(*other, "L1", "a~1");
    renew(*other, "L1", "a~1", held.owner.token);
    ASSERT_TRUE(catch_up());
    const int of_holding = wakes;
    release(*other, "L1", "a~1");
    ASSERT_TRUE(catch_up());
    if (outages() != before) continue;
    EXPECT_EQ(of_holding, 0);
    EXPECT_EQ(wakes, 1);
  }
  EXPECT_EQ(outages(), before) << "it was lost in every round";
}

TEST_F(MongodbStoreTest, ADroppedCollectionWakesWaitersAndTheStreamIsOpenedAgain) {
  const auto store = open("appName=waiter"), other = open("appName=owner");
  take(*other, "L1", "a~1");
  const Client client(store);
  Contender waiter(client, "L1", lease(20s, 10s));
  std::atomic<int> wakes{0};
  const auto watch = store->watch("L2", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live() && wakes > 0; }));
  for (int round = 0; round < 2; ++round) {
    take(*other, "L2", "a~2");
    wakes = 0;
    command(R"({"drop": "$C"})");
    EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "what was held is free";
    EXPECT_TRUE(eventually([&] { return log.count("dropped or renamed") > 0; }));
    EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
    take(*other, "L2", "b~2");
    wakes = 0;
    release(*other, "L2", "b~2");
    EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "the new one is listened to";
  }
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }, 15s)) << "its lease had 30 s to run";
}

TEST_F(MongodbStoreTest, NamesOfDatabaseAndCollectionAreChecked) {
  for (const char* bad : {"", "a b", "a$b", "system.users", "x/y"}) {
    MongodbOptions wrong = options();
    wrong.collection = bad;
    EXPECT_THAT(error_of([&] { open_mongodb(wrong); }), StartsWith("misconfigured")) << bad;
  }
  MongodbOptions wrong = options();
  wrong.connections = 1;
  EXPECT_THAT(error_of([&] { open_mongodb(wrong); }), HasSubstr("between 2 and 1000"));
  wrong = options();
  wrong.uri = "mongodb://user:canary-4711@@@";
  const std::string error = error_of([&] { open_mongodb(wrong); });
  EXPECT_THAT(error, AllOf(StartsWith("misconfigured"), Not(HasSubstr("canary"))));
}

}  // namespace
}  // namespace simba::mongodb
