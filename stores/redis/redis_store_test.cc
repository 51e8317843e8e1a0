#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "simba/async.h"
#include "simba/locker.h"
#include "stores/redis/redis_fixture.h"

// What stands in the server, and how many commands and connections it takes.
namespace simba::redis {
namespace {

std::int64_t left(Admin& admin, const std::string& key) { return admin.ask({"PTTL", key}).number; }

TEST_F(RedisTest, ATermIsWrittenUnderTheNamesOfJvmSimba) {
  const auto store = open();
  const Observation held = take(*store, m, "a~1");
  EXPECT_EQ(admin()({"GET", key()}), "a~1");
  EXPECT_EQ(admin()({"GET", key(":fence")}), std::to_string(held.owner.token));
  EXPECT_EQ(admin()({"GET", key(":token")}), std::to_string(held.owner.token));
  EXPECT_THAT(admin()({"GET", key(":lease")}), ::testing::MatchesRegex("20000 10000 [0-9]+ a~1"));
  for (const char* suffix : {"", ":token", ":lease"}) {
    EXPECT_GT(left(admin(), key(suffix)), 20'000) << suffix;
    EXPECT_LE(left(admin(), key(suffix)), 30'000) << "ttl + transition, " << suffix;
  }
  EXPECT_EQ(left(admin(), key(":fence")), -1) << "the fence never ends";
}

TEST_F(RedisTest, ARenewalGivesTheWholeLeaseAgainAndPublishesNothing) {
  const auto store = open();
  const Token token = take(*store, m, "a~1", 0, 5s, 5s).owner.token;
  Admin ear(url());
  ear({"SUBSCRIBE", key()});
  const Observation renewed = renew(*store, m, "a~1", token, 60s, 30s);
  EXPECT_EQ(renewed.owner.token, token);
  for (const char* suffix : {"", ":token", ":lease"}) EXPECT_GT(left(admin(), key(suffix)), 60'000);
  EXPECT_THAT(admin()({"GET", key(":lease")}), ::testing::StartsWith("60000 30000 "));
  admin()({"PUBLISH", key(), "end"});
  EXPECT_EQ(ear.message(), "end") << "a renewal was published";
}

TEST_F(RedisTest, ATermWithoutItsTokenIsANewOneWithTheWholeLease) {
  const auto store = open();
  const Token token = take(*store, m, "a~1").owner.token;
  admin()({"DEL", key(":token")});
  admin()({"PEXPIRE", key(), "15000"});
  const Observation again = take(*store, m, "a~1");
  EXPECT_GT(again.owner.token, token);
  EXPECT_EQ(again.owner.transition_at - again.now, 30s);
  for (const char* suffix : {"", ":token", ":lease"}) {
    EXPECT_GT(left(admin(), key(suffix)), 15'000) << suffix;
  }
}

TEST_F(RedisTest, AcquiredAndReleasedAreToldOnTheChannelOfTheMutex) {
  const auto store = open();
  Admin ear(url());
  ear({"SUBSCRIBE", key()});
  take(*store, m, "a~1");
  EXPECT_EQ(ear.message(), "acquired@@a~1");
  release(*store, m, "a~1");
  EXPECT_EQ(ear.message(), "released@@a~1");
  EXPECT_EQ(admin()({"EXISTS", key(), key(":token"), key(":lease")}), "0");
  EXPECT_EQ(admin()({"EXISTS", key(":fence")}), "1");
}

TEST_F(RedisTest, AnObserverSeesWhenTheTermBeganAndWhenItsTtlEnds) {
  const auto store = open();
  const Observation held = take(*store, m, "a~1");
  const Observation seen = observe(*open(), m);
  ASSERT_TRUE(seen.owner.ttl_at && seen.owner.acquired_at);
  EXPECT_EQ(*seen.owner.acquired_at, *held.owner.acquired_at);
  EXPECT_EQ(seen.owner.transition_at - *seen.owner.ttl_at, 10s);
  renew(*store, m, "a~1", held.owner.token);
  EXPECT_EQ(observe(*open(), m).owner.acquired_at, held.owner.acquired_at);
}

TEST_F(RedisTest, DetailsOfAnotherOwnerAreNotBelieved) {
  const auto store = open();
  take(*store, m, "a~1");
  admin()({"SET", key(), "jvm", "XX", "KEEPTTL"});
  const Observation seen = observe(*store, m);
  EXPECT_EQ(seen.owner.id, "jvm");
  EXPECT_FALSE(seen.owner.ttl_at);
  EXPECT_FALSE(seen.owner.acquired_at);
}

TEST_F(RedisTest, TheTokenIsTheServersTimeInMicroseconds) {
  const auto store = open();
  const Observation held = take(*store, m, "a~1");
  const auto now = static_cast<Token>(held.now.time_since_epoch().count());
  EXPECT_EQ(held.owner.token / 1'000, now);
}

TEST_F(RedisTest, ATokenGrowsAlsoWhenTheFenceIsAheadOfTheClock) {
  const auto store = open();
  admin()({"SET", key(":fence"), "4000000000000000"});
  EXPECT_EQ(take(*store, m, "a~1").owner.token, 4'000'000'000'000'001);
  release(*store, m, "a~1");
  EXPECT_EQ(take(*store, m, "b~1", 5'000'000'000'000'000).owner.token, 5'000'000'000'000'001);
  EXPECT_EQ(admin()({"GET", key(":fence")}), "5000000000000001") << "exact to the last digit";
}

TEST_F(RedisTest, AFenceThatWasForgottenDoesNotLowerTheToken) {
  const auto store = open();
  const Token first = take(*store, m, "a~1").owner.token;
  release(*store, m, "a~1");
  admin()({"DEL", key(":fence")});
  EXPECT_GT(take(*store, m, "b~1", first).owner.token, first);
}

TEST_F(RedisTest, AFenceAtTheEndOfTheNumbersIsAnErrorAndTakesNothing) {
  const auto store = open();
  admin()({"SET", key(":fence"), "9007199254740991"});
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }), HasSubstr("2^53"));
  EXPECT_EQ(admin()({"EXISTS", key()}), "0");
  EXPECT_EQ(admin()({"GET", key(":fence")}), "9007199254740991");
}

TEST_F(RedisTest, AnEvictionLeavesAKeyWithoutAName) {
  const auto store = open();
  const Token token = take(*store, m, "a~1").owner.token;
  store->evict(m, "a~1", token, Eviction::kKeepLease, soon());
  EXPECT_EQ(admin()({"GET", key()}), "");
  EXPECT_GT(left(admin(), key()), 20'000) << "the lease stays";
}

TEST_F(RedisTest, AMutexWhoseKeysMakeNoSenseFailsNoneOfItsNeighbours) {
  const auto store = open();
  const std::string bad = m + ".bad", good = m + ".good";
  const Token token = take(*store, good, "a~1").owner.token;
  const Token its = take(*store, bad, "a~1").owner.token;
  admin()({"SET", "simba:{" + bad + "}:token", "x", "KEEPTTL"});
  const std::vector<std::string_view> names{bad, good, m};
  const Answers seen = store->observe(names, soon());
  ASSERT_TRUE(std::holds_alternative<Error>(seen[0]));
  EXPECT_EQ(std::get<Error>(seen[0]).errc(), Errc::kCorrupt);
  EXPECT_EQ(observed(seen[1]).owner.token, token);
  EXPECT_TRUE(observed(seen[2]).is_free());
  const Claim claims[] = {{bad, "a~1", its, 0, 20s, 10s}, {good, "a~1", token, 0, 20s, 10s}};
  const Answers renewed = store->contend(claims, soon());
  EXPECT_TRUE(std::holds_alternative<Error>(renewed[0]));
  EXPECT_EQ(observed(renewed[1]).owner.token, token);
}

TEST_F(RedisTest, ATermWhoseDetailsMakeNoSenseIsRenewedWithNewOnes) {
  const auto store = open();
  const std::string other = m + ".other";
  const Token token = take(*store, m, "a~1").owner.token;
  const Token its = take(*store, other, "a~1").owner.token;
  for (const char* nonsense : {"nonsense", "1 2 nonsense", ""}) {
    admin()({"SET", key(":lease"), nonsense, "KEEPTTL"});
    const Claim claims[] = {{m, "a~1", token, 0, 60s, 30s}, {other, "a~1", its, 0, 60s, 30s}};
    for (const Answer& each : store->contend(claims, soon())) {
      EXPECT_EQ(observed(each).owner.id, "a~1") << nonsense;
    }
    EXPECT_THAT(admin()({"GET", key(":lease")}),
                ::testing::MatchesRegex("60000 30000 [0-9]{16} a~1"))
        << nonsense;
  }
}

TEST_F(RedisTest, AKeyOfAnotherKindIsAnErrorThatSaysSo) {
  const auto store = open();
  admin()({"RPUSH", key(), "not a lock"});
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }), HasSubstr("not ours"));
  EXPECT_EQ(admin()({"TYPE", key()}), "list");
}

TEST_F(RedisTest, AKeyThatNoMutexCanHaveDoesNotKeepListFromListing) {
  const auto store = open();
  take(*store, m, "a~1");
  admin()({"SET", "simba:{" + m + std::string(300, 'x') + "}", "not a lock", "PX", "60000"});
  EXPECT_EQ(store->list(m, {}, 10, soon()).size(), 1u);
}

TEST_F(RedisTest, NamesThatJvmSimbaCannotReadAreRefused) {
  const auto store = open();
  EXPECT_THAT(error_of([&] { store->check_mutex("}x"); }), HasSubstr("slots"));
  EXPECT_THAT(error_of([&] { store->check_label("a@@b"); }), HasSubstr("@@"));
  EXPECT_THAT(error_of([&] { take(*store, "}x", "a~1"); }), HasSubstr("slots"));
  EXPECT_THAT(error_of([&] { take(*store, m, "a@@b"); }), HasSubstr("@@"));
  EXPECT_THAT(error_of([&] { take(*store, m, "a", Token{1} << 60U); }), HasSubstr("2^53"));
}

TEST_F(RedisTest, HundredsOfContendersShareTwoConnections) {
  const std::string name = "crowd" + m;
  const Client client(open("client-name=" + name), {});
  std::atomic<int> told{0};
  std::vector<PendingAcquire> waiting;
  const auto holder = open();
  take(*holder, m, "holder~1");
  for (int i = 0; i < 300; ++i) {
    waiting.push_back(acquire_async(client, m, {}, [&](const Acquired&) { ++told; }));
  }
  std::vector<std::thread> threads;
  std::atomic<int> pairs{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      SimbaLocker locker(client, m + "." + std::to_string(i));
      for (int k = 0; k < 20; ++k) {
        locker.lock();
        locker.unlock();
        ++pairs;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pairs, 320);
  const auto connections = [&] {
    const std::string all = admin()({"CLIENT", "LIST"});
    int count = 0;
    for (std::size_t at = all.find("name=" + name); at != all.npos;
         at = all.find("name=" + name, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_TRUE(eventually([&] { return connections() == 2; })) << connections();
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "1") << "one place for all of a process";
  EXPECT_EQ(told, 0);
  for (PendingAcquire& each : waiting) each.cancel();
}

// How many threads of this process have this name.
int threads_named(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string its;
    std::getline(std::ifstream(task.path() / "comm"), its);
    count += its == name ? 1 : 0;
  }
  return count;
}

TEST_F(RedisTest, OneCallerDoesItsOwnWorkAndManyAreServedByAThread) {
  const auto store = open();
  const auto pair = [&](const std::string& mutex) {
    take(*store, mutex, "a~1");
    release(*store, mutex, "a~1");
  };
  for (int i = 0; i < 200; ++i) pair(m);
  EXPECT_EQ(threads_named("simba-redis"), 0) << "a hop to a thread, for one caller";
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&, mutex = m + '.' + std::to_string(i)] {
      while (!stop) pair(mutex);
    });
  }
  EXPECT_TRUE(eventually([&] { return threads_named("simba-redis") == 1; }));
  stop = true;
  for (std::thread& each : callers) each.join();
}

TEST_F(RedisTest, StoresOfOneProcessWithTheSameOptionsShareTheirConnections) {
  const std::string name = "shared" + m;
  const auto first = open("client-name=" + name), second = open("client-name=" + name);
  take(*first, m, "a~1");
  EXPECT_EQ(observe(*second, m).owner.id, "a~1");
  const std::string all = admin()({"CLIENT", "LIST"});
  EXPECT_NE(all.find("name=" + name), all.npos);
  EXPECT_EQ(all.find("name=" + name), all.rfind("name=" + name)) << "more than one";
}

TEST_F(RedisTest, AThousandRenewalsGoOutInPiecesAndAreAnsweredInOrder) {
  const auto store = open();
  std::vector<std::string> names;
  std::vector<Claim> claims;
  for (int i = 0; i < 1'000; ++i) names.push_back(m + '.' + std::to_string(1'000 + i));
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  const Answers taken = store->contend(claims, soon(30s));
  for (std::size_t i = 0; i < claims.size(); ++i) claims[i].token = observed(taken[i]).owner.token;
  claims[500].token += 1;
  claims[700].wire_id = "b~1";
  const Answers renewed = store->contend(claims, soon(30s));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    EXPECT_EQ(observed(renewed[i]).owner.id, "a~1") << i;
    EXPECT_EQ(observed(renewed[i]).owner.token == claims[i].token, i != 500) << i;
  }
  store->release(claims, soon(30s));
}

TEST_F(RedisTest, AForgottenScriptIsToldAgain) {
  const auto store = open();
  const Token token = take(*store, m, "a~1").owner.token;
  admin()({"SCRIPT", "FLUSH"});
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token);
  admin()({"SCRIPT", "FLUSH"});
  EXPECT_EQ(observe(*store, m).owner.id, "a~1");
  admin()({"SCRIPT", "FLUSH"});
  release(*store, m, "a~1");
  admin()({"SCRIPT", "FLUSH"});
  EXPECT_EQ(take(*store, m, "b~1").owner.id, "b~1");
}

TEST_F(RedisTest, AForkedChildIsToldSoAndHarmsNothing) {
  const auto store = open();
  take(*store, m, "a~1");
  const Hints hints(*store, m);
  ASSERT_TRUE(hints.awaits_live());
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = error_of([&] { take(*store, m, "b~1"); });
    std::shared_ptr<Store> mine = store;
    const_cast<std::shared_ptr<Store>&>(store).reset();
    mine.reset();
    _exit(said.find("forked") != said.npos ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(observe(*store, m).owner.id, "a~1");
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > 1; }));
}

TEST_F(RedisTest, AUserChoosesTheDatabase) {
  const auto store = open("database=3");
  take(*store, m, "a~1");
  EXPECT_EQ(admin()({"EXISTS", key()}), "0");
  Admin third(url("database=3"));
  EXPECT_EQ(third({"GET", key()}), "a~1");
  release(*store, m, "a~1");
  third({"DEL", key(":fence")});
  EXPECT_THAT(error_of([&] { take(*open("database=9999"), m, "a~1"); }), HasSubstr("out of range"));
}

}  // namespace
}  // namespace simba::redis
