#include <mongoc/mongoc.h>

#include <thread>

#include "stores/kit/documented.h"
#include "stores/mongodb/administration.h"
#include "stores/mongodb/mongodb_fixture.h"
#include "stores/mongodb/mutex_collection.h"
#include "testing/servers/relay.h"

// Servers of a case's own, which are stopped, cut off, and told to fail.
namespace simba::mongodb {
namespace {

using servers::MongodbServer;
using servers::MongodbSettings;
using servers::Relay;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::NotNull;
using ::testing::StartsWith;

class MongodbServerTest : public OwnMongodbTest {
 protected:
  // The next commands of this name fail so.
  static void fail(MongodbServer& server, const std::string& command, const std::string& how,
                   int times = 1) {
    server.command(R"({"configureFailPoint": "failCommand", "mode": {"times": )" +
                   std::to_string(times) + R"(}, "data": {"failCommands": [")" + command +
                   R"("], "appName": "victim", )" + how + "}}");
  }
  static MongodbSettings with_fail_points() {
    MongodbSettings settings;
    settings.options = {"--setParameter", "enableTestCommands=1"};
    return settings;
  }
};

TEST_F(MongodbServerTest, AWriteConcernErrorIsNoOwnershipAndIsAskedAgain) {
  MongodbServer server(with_fail_points());
  server.start();
  const auto store = open(server.url({}, "appName=victim"));
  take(*store, "L1", "b~1");
  release(*store, "L1", "b~1");
  fail(server, "findAndModify",
       R"("writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"})");
  EXPECT_THAT(error_of([&] { take(*store, "L1", "a~1"); }),
              AllOf(StartsWith("the deadline passed"), HasSubstr("majority"), HasSubstr("64")));
  // It did act, and a majority has it soon: the same id asks again and hears its own token.
  Observation seen;
  ASSERT_TRUE(eventually([&] { return (seen = observe(*store, "L1")).owner.id == "a~1"; }));
  const Observation again = take(*store, "L1", "a~1");
  EXPECT_EQ(again.owner.id, "a~1");
  EXPECT_EQ(again.owner.token, seen.owner.token);
  fail(server, "update", R"("writeConcernError": {"code": 91, "errmsg": "shutting down"})");
  EXPECT_THAT(error_of([&] { release(*store, "L1", "a~1"); }),
              StartsWith("the store cannot be reached"));
  release(*store, "L1", "a~1");
  EXPECT_TRUE(observe(*store, "L1").is_free());
}

// Each way to claim: the one who asks again hears what has become of it.
TEST_F(MongodbServerTest, AWriteConcernErrorGrantsNoRenewalAndNoBatch) {
  MongodbServer server(with_fail_points());
  server.start();
  const auto store = open(server.url({}, "appName=victim"));
  const auto error_of_next = [&](const std::string& command, std::span<const Claim> claims) {
    fail(server, command,
         R"("writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"})");
    return error_of([&] { store->contend(claims, soon()); });
  };
  const auto is_refused = AllOf(StartsWith("the deadline passed"), HasSubstr("majority"));
  std::vector<Claim> claims{{"L1", "a~1", 0, 0, 20s, 10s}, {"L2", "a~2", 0, 0, 20s, 10s}};
  EXPECT_THAT(error_of_next("update", claims), is_refused);
  Answers answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Observation seen = observed(answers[i]);
    ASSERT_EQ(seen.owner.id, claims[i].wire_id);
    claims[i].token = seen.owner.token;
  }
  EXPECT_THAT(error_of_next("update", claims), is_refused);
  EXPECT_THAT(error_of_next("findAndModify", {claims.data(), 1}), is_refused);
  answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    EXPECT_EQ(observed(answers[i]).owner.token, claims[i].token);
  }
}

TEST_F(MongodbServerTest, ErrorsOfTheServerAreWhatTheyAre) {
  MongodbServer server(with_fail_points());
  server.start();
  const auto store = open(server.url({}, "appName=victim"));
  take(*store, "L1", "a~1");
  fail(server, "findAndModify", R"("errorCode": 112)");
  EXPECT_THAT(error_of([&] { take(*store, "L2", "a~1"); }), StartsWith("the deadline passed"));
  fail(server, "findAndModify", R"("errorCode": 10107)");
  EXPECT_THAT(error_of([&] { take(*store, "L2", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr("not the primary")));
  fail(server, "findAndModify", R"("closeConnection": true)");
  EXPECT_THAT(error_of([&] {
                insist([&] { return observe(*store, "L1"); });
                take(*store, "L2", "a~1");
              }),
              StartsWith("the store cannot be reached"));
  fail(server, "findAndModify", R"("errorCode": 4242)");
  EXPECT_THAT(error_of([&] {
                insist([&] { return observe(*store, "L1"); });
                take(*store, "L2", "a~1");
              }),
              AllOf(HasSubstr("4242"), HasSubstr("not expected")));
  // A duplicate key comes of a race that somebody has won.
  fail(server, "insert", R"("errorCode": 11000)");
  EXPECT_THAT(error_of([&] { take(*store, "L3", "a~1"); }), Not(HasSubstr("11000")));
  EXPECT_EQ(take(*store, "L3", "a~1").owner.id, "a~1");
}

TEST_F(MongodbServerTest, AContenderRidesOutErrorsInsideItsLease) {
  MongodbServer server(with_fail_points());
  server.start();
  std::atomic<int> failed{0}, renewed{0};
  ClientOptions heard;
  heard.on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kRenewalFailed) ++failed;
    if (event.kind == Event::Kind::kRenewed && failed >= 2) ++renewed;
  };
  const Client client(open(server.url({}, "appName=victim")), heard);
  Contender owner(client, "L1", lease(6s, 6s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  fail(server, "findAndModify", R"("errorCode": 91)", 2);
  EXPECT_TRUE(eventually([&] { return renewed > 0; })) << failed << " failed";
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.released(), 0);
}

TEST_F(MongodbServerTest, AWrongPasswordIsDeniedAndNeverRepeated) {
  MongodbSettings settings;
  settings.password = "right";
  MongodbServer server(settings);
  server.start();
  const auto wrong = open(server.url("root:canary-4711", "authSource=admin"));
  const std::string error = error_of([&] { take(*wrong, "L1", "a~1"); });
  EXPECT_THAT(error, AllOf(StartsWith("the store denied"), HasSubstr("authSource")));
  EXPECT_THAT(error, Not(HasSubstr("canary")));
  const auto nobody = open(server.url());
  EXPECT_THAT(error_of([&] { take(*nobody, "L1", "a~1"); }),
              AllOf(StartsWith("the store denied"), HasSubstr("role")));
  const auto right = open(server.url("root:right", "authSource=admin"));
  EXPECT_EQ(take(*right, "L1", "a~1").owner.id, "a~1");
  // The documented roles are enough, and an observer needs find alone.
  for (const std::string& each :
       kit::commands_in(kit::documented(SIMBA_DOCS "/mongodb.md", "createRole"))) {
    server.command(each);
  }
  const auto locker = open(server.url("contender:PASSWORD", "authSource=admin"));
  const auto watch = locker->watch("L1", {}, [] {});
  EXPECT_EQ(take(*locker, "L2", "b~1").owner.id, "b~1");
  release(*locker, "L2", "b~1");
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
  const auto looker = open(server.url("observer:PASSWORD", "authSource=admin"));
  EXPECT_EQ(observe(*looker, "L1").owner.id, "a~1");
  EXPECT_TRUE(observe(*looker, "nobody").is_free());
  EXPECT_THAT(error_of([&] { take(*looker, "L2", "c~1"); }), StartsWith("the store denied"));
  for (const std::string& line : log.all()) EXPECT_THAT(line, Not(HasSubstr("canary")));
}

TEST_F(MongodbServerTest, AStandaloneServerIsPolledWhichIsSaidOnce) {
  MongodbSettings settings;
  settings.kind = MongodbSettings::Kind::kAlone;
  MongodbServer server(settings);
  server.start();
  const auto store = open(server.url());
  const Observation held = take(*store, "L1", "a~1");
  const Client client(store);
  Contender one(client, "L1", lease(20s, 10s)), two(client, "L2", lease(20s, 10s));
  EXPECT_TRUE(eventually([&] { return log.count("waiters poll") > 0; }));
  const auto watch = store->watch("L3", {}, [] {});
  EXPECT_FALSE(watch && watch->is_live());
  const auto other = open(server.url({}, "appName=other"));
  release(*other, "L1", "a~1", held.owner.token);
  EXPECT_TRUE(eventually([&] { return one.is_owner() && two.is_owner(); }));
  EXPECT_EQ(log.count("waiters poll"), 1U);
}

TEST_F(MongodbServerTest, ACallEndsAtItsDeadlineWhateverTheNetworkDoes) {
  MongodbServer server;
  server.start();
  Relay relay(server.port());
  const auto store = open(url_of(relay.port()));
  const Observation held = take(*store, "L1", "a~1");
  relay.stall();
  LocalTime began = BootClock::now();
  EXPECT_THAT(error_of([&] { renew(*store, "L1", "a~1", held.owner.token, began + 300ms); }),
              StartsWith("the deadline passed"));
  EXPECT_LT(BootClock::now() - began, 15s);
  relay.mend();
  EXPECT_EQ(insist([&] { return renew(*store, "L1", "a~1", held.owner.token); }).owner.token,
            held.owner.token);
  relay.cut();
  began = BootClock::now();
  EXPECT_NE(error_of([&] { renew(*store, "L1", "a~1", held.owner.token, began + 300ms); }), "none");
  EXPECT_LT(BootClock::now() - began, 15s);
  relay.mend();
  EXPECT_EQ(insist([&] { return renew(*store, "L1", "a~1", held.owner.token); }).owner.token,
            held.owner.token);
}

// What the server may take is what is left by then. Its own record says what it was told.
TEST_F(MongodbServerTest, TheTimeThatAPrimaryWasWaitedForIsNotGivenToTheServer) {
  constexpr auto kPatience = 20s, kAway = 3s;
  MongodbServer server;
  server.start();
  const auto endpoint = Endpoint::make(options(server.url()));
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  server.command(R"({"profile": 2})", "MongoLocks");
  const LocalTime began = BootClock::now();
  server.command(R"({"replSetStepDown": )" + std::to_string(kAway.count()) + R"(, "force": true})");
  ASSERT_TRUE(eventually([&] {
    return error_of([&] { endpoint->await_primary({began, nullptr}); }) != "none";
  }));
  const Claim claim{"L1", "a~1", 0, 0, 20s, 10s};
  const Answers answers =
      MutexCollection(*endpoint).contend(connection, {&claim, 1}, began + kPatience);
  EXPECT_EQ(observed(answers.front()).owner.id, "a~1");
  const std::string most = std::to_string(milliseconds(kPatience - kAway).count() * 9 / 10);
  EXPECT_THAT(
      server.command(
          R"({"find": "system.profile", "filter": {"$or": [{"command.maxTimeMS": {"$gt": )" + most +
              R"(}}, {"command.writeConcern.wtimeout": {"$gt": )" + most + R"(}}]}})",
          "MongoLocks"),
      HasSubstr(R"("firstBatch" : [  ])"));
}

TEST_F(MongodbServerTest, ALostAnswerIsAmbiguousAndTheSameIdHearsItsTokenAgain) {
  MongodbServer server;
  server.start();
  Relay relay(server.port());
  const auto store = open(url_of(relay.port())), direct = open(server.url());
  take(*store, "warm", "a~0");
  take(*direct, "L1", "b~1");
  release(*direct, "L1", "b~1");
  relay.mute();
  EXPECT_THAT(error_of([&] { take(*store, "L1", "a~1", 0, BootClock::now() + 500ms); }),
              StartsWith("the deadline passed"));
  ASSERT_TRUE(eventually([&] { return observe(*direct, "L1").owner.id == "a~1"; }))
      << "the server did act";
  const Token token = observe(*direct, "L1").owner.token;
  relay.mend();
  EXPECT_EQ(insist([&] { return take(*store, "L1", "a~1"); }).owner.token, token);
}

TEST_F(MongodbServerTest, ACutNetworkEndsATermInTimeAndAShortOneDoesNot) {
  MongodbServer server;
  server.start();
  Relay relay(server.port());
  const auto store = open(url_of(relay.port()));
  const Client client(store), rival(open(server.url()));
  const Contender steady(client, "L3", steady_lease());
  ASSERT_TRUE(eventually([&] { return steady.is_owner(); }));
  relay.cut();
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { take(*store, "L2", "a~2", 0, BootClock::now() + 300ms); }) != "none";
  }));
  relay.mend();
  EXPECT_TRUE(steady.is_renewed());
  EXPECT_EQ(steady.released(), 0) << "a gap that is shorter than the lease";
  Contender owner(client, "L1", lease(4s, 2s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  Contender waiter(rival, "L1", lease(4s, 2s));
  relay.cut();
  bool both = false;
  EXPECT_TRUE(eventually([&] {
    const bool has = waiter.is_owner();  // asked first: the other one may end in between
    both |= has && owner.is_owner();
    return has;
  }));
  EXPECT_FALSE(both);
  EXPECT_TRUE(eventually([&] { return owner.released() == owner.acquired(); }));
  relay.mend();
}

TEST_F(MongodbServerTest, AKilledServerComesBackWithWhatItAcknowledged) {
  MongodbServer server;
  server.start();
  const auto store = open(server.url());
  std::atomic<int> wakes{0};
  const auto watch = store->watch("L1", {}, [&] { ++wakes; });
  const Observation held = take(*store, "L1", "a~1");
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  server.kill();
  EXPECT_THAT(error_of([&] { take(*store, "L2", "a~2", 0, BootClock::now() + 1s); }),
              Not(StartsWith("none")));
  EXPECT_TRUE(eventually([&] { return !watch->is_live(); }));
  server.start();
  EXPECT_EQ(insist([&] { return observe(*store, "L1"); }).owner.token, held.owner.token);
  EXPECT_EQ(insist([&] { return renew(*store, "L1", "a~1", held.owner.token); }).owner.id, "a~1");
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
  wakes = 0;
  const auto other = open(server.url({}, "appName=other"));
  insist([&] {
    release(*other, "L1", "a~1");
    return Observation{};
  });
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
}

TEST_F(MongodbServerTest, AStoreThatGoesHasGivenBackAllClientsOfAUsersPool) {
  MongodbServer server;
  server.start();
  Relay relay(server.port());
  const std::string limits =
      "&maxPoolSize=3&socketTimeoutMS=3000&connectTimeoutMS=500&serverSelectionTimeoutMS=500";
  mongoc_uri_t* uri = mongoc_uri_new(url_of(relay.port(), limits).c_str());
  mongoc_client_pool_t* pool = mongoc_client_pool_new(uri);
  {
    MongodbOptions own = options(server.url());
    own.pool = pool;
    own.connections = 2;
    const auto store = open_mongodb(own);
    const auto watch = store->watch("L1", {}, [] {});
    take(*store, "L1", "a~1");
    ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
    relay.stall();  // the one that listens hangs for longer than its thread is waited for
  }
  std::vector<mongoc_client_t*> back;
  for (int i = 0; i < 3; ++i) back.push_back(mongoc_client_pool_try_pop(pool));
  relay.mend();
  mongoc_uri_destroy(uri);
  ASSERT_THAT(back, Each(NotNull()));
  for (mongoc_client_t* client : back) mongoc_client_pool_push(pool, client);
  mongoc_client_pool_destroy(pool);
}

// By what the server writes down of itself.
TEST_F(MongodbServerTest, ABatchOfRenewalsIsOneUpdate) {
  constexpr int kTerms = 200;
  MongodbServer server;
  server.start();
  const auto store = open(server.url());
  std::vector<std::string> names, ids;
  std::vector<Claim> claims;
  for (int i = 0; i < kTerms; ++i) {
    names.push_back("L" + std::to_string(1'000 + i));
    ids.push_back("a~" + std::to_string(i));
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    claims.push_back({names[i], ids[i], 0, 0, 20s, 10s});
  const Answers taken = store->contend(claims, soon());
  for (std::size_t i = 0; i < names.size(); ++i) claims[i].token = observed(taken[i]).owner.token;
  server.command(R"({"profile": 2})", "MongoLocks");
  const Answers renewed = store->contend(claims, soon());
  server.command(R"({"profile": 0})", "MongoLocks");
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(observed(renewed[i]).owner.id, ids[i]);
  }
  const std::string seen = server.command(
      R"({"aggregate": "system.profile", "cursor": {}, "pipeline": [
        {"$match": {"ns": "MongoLocks.pessimisticLocks"}}, {"$group": {"_id": "$op", "n": {"$sum": 1}}}]})",
      "MongoLocks");
  EXPECT_THAT(seen, HasSubstr(R"("firstBatch" : [ { "_id" : "update", "n" : 1 } ])"));
}

// Two of `simba init` at once: neither saw it when it looked.
TEST_F(MongodbServerTest, ACollectionThatSomebodyElseMakesMeanwhileWasThereAlready) {
  MongodbServer server(with_fail_points());
  server.start();
  const std::string url = server.url({}, "appName=victim");
  fail(server, "create", R"("errorCode": 48)");
  EXPECT_THAT(prepare(url, Prepare::kNow).summary, HasSubstr("was there already"));
  EXPECT_THAT(prepare(url, Prepare::kNow).summary, HasSubstr("is made"));
  EXPECT_THAT(prepare(url, Prepare::kNow).summary, HasSubstr("was there already"));
}

// As a user may write SIMBA_TEST_MONGODB_URL.
TEST_F(MongodbServerTest, ACommandOfTheTestsNeedsNoParametersInItsUrl) {
  try {
    servers::run_mongodb_command("mongodb://127.0.0.1", R"({"ping": 1})");
  } catch (const std::runtime_error& error) {  // most likely nobody is there
    EXPECT_THAT(error.what(), Not(HasSubstr("timeoutms"))) << "taken for a part of the host";
  }
}

// One of 3.4, by what it says of itself.
TEST_F(MongodbServerTest, AServerThatTheDriverDoesNotSpeakToIsNotWaitedFor) {
  MongodbServer server;
  server.start();
  Relay relay(server.port());
  relay.lie([](std::string_view said) {
    const std::string name = std::string("maxWireVersion") + '\0';
    std::string told(said);
    if (const auto at = told.find(name); at != told.npos) told[at + name.size()] = 5;
    return told;
  });
  const auto store = open(url_of(relay.port()));
  EXPECT_THAT(error_of([&] { take(*store, "L1", "a~1"); }),
              AllOf(StartsWith("misconfigured"), HasSubstr("MongoDB 4.2")));
}

TEST_F(MongodbServerTest, NobodyThereIsSaidWithTheAddress) {
  const servers::Port nobody;
  const std::string where = "127.0.0.1:" + std::to_string(nobody.number());
  const auto store = open("mongodb://" + where + "/?replicaSet=rs0");
  const LocalTime began = BootClock::now();
  EXPECT_THAT(error_of([&] { take(*store, "L1", "a~1"); }),
              AllOf(StartsWith("the store cannot be reached"), HasSubstr(where)));
  EXPECT_LT(BootClock::now() - began, 9s);
}

}  // namespace
}  // namespace simba::mongodb
