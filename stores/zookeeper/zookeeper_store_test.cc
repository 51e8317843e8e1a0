#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "stores/zookeeper/zookeeper_fixture.h"

// The store on a real server, sessions apart: what the contract suite, where a process has one
// session, does not see.
namespace simba::zookeeper {
namespace {

using ::testing::HasSubstr;

TEST_F(ZookeeperTest, ANodeThatNoMutexCanHaveDoesNotKeepListFromListing) {
  const auto store = connect();
  take(*store, m, "a~1");
  const std::string other = path(m + std::string(300, 'x'));
  ASSERT_EQ(raw().create(other), ZOK);
  EXPECT_EQ(store->list(m, {}, 10, soon(60s)).size(), 1U);
  raw().remove(other);
}

TEST_F(ZookeeperTest, TheNodesAreThoseOfCurator) {
  const auto store = connect();
  const Observation held = take(*store, m, "me~1");
  const auto names = raw().children(path(m));
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0], ::testing::MatchesRegex("_c_.{36}-latch-.{10}"));
  EXPECT_EQ(names[0].find('_', 3), std::string::npos);
  const Stat node = raw().stat(path(m) + '/' + names[0]);
  EXPECT_NE(node.ephemeralOwner, 0);
  EXPECT_EQ(held.owner.token, static_cast<Token>(node.czxid));
  EXPECT_EQ(raw().data(path(m) + '/' + names[0]), "me~1");
  EXPECT_EQ(node.version, 0)
      << "a renewal writes nothing to it: a watch of Curator's would be spent";
  renew(*store, m, "me~1", held.owner.token);
  EXPECT_EQ(raw().stat(path(m) + '/' + names[0]).version, 0);
}

TEST_F(ZookeeperTest, WaitersAreServedInTheOrderTheyCame) {
  std::vector<std::shared_ptr<Store>> stores;
  for (int i = 0; i < 5; ++i) stores.push_back(connect());
  const auto id = [](std::size_t i) { return "c~" + std::to_string(i); };
  for (std::size_t i = 0; i < stores.size(); ++i) {
    EXPECT_EQ(owns(take(*stores[i], m, id(i)), id(i)), i == 0);
  }
  for (std::size_t i = 0; i < stores.size(); ++i) {
    for (std::size_t k = stores.size(); k-- > i + 1;) {
      const Observation seen = take(*stores[k], m, id(k));
      EXPECT_EQ(seen.owner.id, id(i)) << "who does not lead knows who does";
    }
    ASSERT_TRUE(owns(take(*stores[i], m, id(i)), id(i)));
    release(*stores[i], m, id(i));
  }
}

// A node has its token before its contender hears that it owns: another of the process can have
// been told of it meanwhile.
TEST_F(ZookeeperTest, AWaiterWhoseTokenItsProcessHasSeenAlreadyStillGetsTheMutex) {
  const auto store = connect();
  take(*store, m, "a~1");
  take(*store, m, "b~1");
  release(*store, m, "a~1");
  const Observation seen = observe(*store, m);
  ASSERT_EQ(seen.owner.id, "b~1");
  const Observation held = take(*store, m, "b~1", 60s, 30s, seen.owner.token);
  EXPECT_TRUE(owns(held, "b~1"));
  EXPECT_EQ(held.owner.token, seen.owner.token);
}

TEST_F(ZookeeperTest, AHandOverWakesOneWaiterOfMany) {
  constexpr std::size_t kWaiters = 40;
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  std::vector<std::atomic<int>> wakes(kWaiters);
  const auto id = [](std::size_t i) { return "c~" + std::to_string(i); };
  const auto store = connect();
  take(*store, m, "owner~1");
  for (std::size_t i = 0; i < kWaiters; ++i) {
    stores.push_back(i % 10 == 0 ? connect() : stores.back());
    watches.push_back(stores[i]->watch(m, id(i), [&wakes, i] { ++wakes[i]; }));
    take(*stores[i], m, id(i));
  }
  release(*store, m, "owner~1");
  for (std::size_t i = 0; i < kWaiters; ++i) {
    ASSERT_TRUE(eventually([&] { return wakes[i] == 1; })) << i;
    int all = 0;
    for (const auto& each : wakes) all += each;
    EXPECT_EQ(all, static_cast<int>(i) + 1) << "a release woke more than the next";
    ASSERT_TRUE(owns(take(*stores[i], m, id(i)), id(i)));
    release(*stores[i], m, id(i));
  }
}

TEST_F(ZookeeperTest, AWaiterInTheMiddleThatLeavesWakesTheOneBehindItAndNobodyElse) {
  const auto store = connect();
  std::vector<std::atomic<int>> wakes(4);
  std::vector<std::unique_ptr<Watch>> watches;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string id = "c~" + std::to_string(i);
    watches.push_back(store->watch(m, id, [&wakes, i] { ++wakes[i]; }));
    take(*store, m, id);
  }
  release(*store, m, "c~1");
  ASSERT_TRUE(eventually([&] { return wakes[2] == 1; }));
  EXPECT_FALSE(owns(take(*store, m, "c~2"), "c~2"));
  release(*store, m, "c~0");
  ASSERT_TRUE(eventually([&] { return wakes[2] == 2; })) << "it watches the next one before it";
  EXPECT_TRUE(owns(take(*store, m, "c~2"), "c~2"));
  EXPECT_EQ(wakes[0] + wakes[1] + wakes[3], 0);
}

TEST_F(ZookeeperTest, ForeignChildrenOfTheContainerAreLeftAlone) {
  raw().create("/simba", {}, ZOO_CONTAINER);
  raw().create(path(m), {}, ZOO_CONTAINER);
  for (const char* name : {"0", "aaa", "lock-0000000000", "latch-", "latch-12", "zzz"}) {
    ASSERT_EQ(raw().create(path(m) + '/' + name, "foreign"), ZOK);
  }
  const auto store = connect(), other = connect();
  EXPECT_TRUE(observe(*store, m).is_free());
  EXPECT_TRUE(owns(take(*store, m, "a~1"), "a~1"));
  EXPECT_FALSE(owns(take(*other, m, "b~1"), "b~1"));
  release(*store, m, "a~1");
  EXPECT_TRUE(owns(take(*other, m, "b~1"), "b~1"));
  release(*other, m, "b~1");
  EXPECT_TRUE(raw().exists(path(m) + "/aaa"));
}

TEST_F(ZookeeperTest, OfALeaderWithALongIdTheBeginningIsKnown) {
  raw().create("/simba", {}, ZOO_CONTAINER);
  raw().create(path(m), {}, ZOO_CONTAINER);
  const std::string data = "curator-" + std::string(500'000, 'x');
  ASSERT_EQ(raw().create(path(m) + "/_c_someone-latch-", data, ZOO_EPHEMERAL_SEQUENTIAL), ZOK);
  const auto store = connect();
  EXPECT_EQ(observe(*store, m).owner.id, data.substr(0, 1'024));
  EXPECT_EQ(take(*store, m, "a~1").owner.id, data.substr(0, 1'024));
  raw().remove(path(m) + '/' + raw().children(path(m))[0]);
  EXPECT_TRUE(owns(take(*store, m, "a~1"), "a~1"));
}

TEST_F(ZookeeperTest, AnOwnerWhoseNodeSomebodyDeletedHasLost) {
  const auto store = connect(), other = connect();
  const Token token = take(*store, m, "a~1").owner.token;
  raw().remove(path(m) + '/' + raw().children(path(m))[0]);
  EXPECT_TRUE(owns(take(*other, m, "b~1"), "b~1"));
  const Observation seen = renew(*store, m, "a~1", token);
  EXPECT_EQ(seen.owner.id, "b~1");
  EXPECT_GT(seen.owner.token, token);
  EXPECT_EQ(raw().children(path(m)).size(), 1U) << "a renewal makes nothing";
}

TEST_F(ZookeeperTest, AnOwnerWhoseNodeSomebodyWroteHasLost) {
  const auto store = connect(), other = connect();
  const Token token = take(*store, m, "a~1", 6s, 3s).owner.token;
  take(*other, m, "b~1");
  ASSERT_EQ(raw().set(path(m) + '/' + raw().children(path(m))[0], "somebody"), ZOK);
  const Claim claim{m, "a~1", token, 0, 6s, 3s};
  const Answers answers = store->contend({&claim, 1}, soon(5s));
  const auto* seen = std::get_if<Observation>(&answers[0]);
  ASSERT_TRUE(seen) << "it was asked again and again";
  EXPECT_FALSE(owns(*seen, "a~1"));
  EXPECT_TRUE(eventually([&] { return owns(take(*other, m, "b~1"), "b~1"); }))
      << "its node goes with its lease";
}

TEST_F(ZookeeperTest, AWaiterWhoseNodeSomebodyDeletedQueuesAgain) {
  const auto store = connect(), other = connect();
  take(*store, m, "a~1");
  take(*other, m, "b~1");
  raw().remove(path(m) + '/' + raw().children(path(m))[1]);
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1");
  EXPECT_EQ(raw().children(path(m)).size(), 2U);
  release(*store, m, "a~1");
  EXPECT_TRUE(owns(take(*other, m, "b~1"), "b~1"));
}

// CURATOR-696: a node with our id that is not of our session is waited for, never trusted.
TEST_F(ZookeeperTest, Curator696ANodeOfAnotherSessionIsNotTrustedWhateverItsName) {
  raw().create("/simba", {}, ZOO_CONTAINER);
  raw().create(path(m), {}, ZOO_CONTAINER);
  ASSERT_EQ(raw().create(path(m) + '/' + latch_stem("a~1"), "a~1", ZOO_EPHEMERAL_SEQUENTIAL), ZOK);
  const Token token =
      static_cast<Token>(raw().stat(path(m) + '/' + raw().children(path(m))[0]).czxid);
  const auto store = connect();
  EXPECT_FALSE(owns(take(*store, m, "a~1"), "a~1"));
  EXPECT_FALSE(owns(renew(*store, m, "a~1", token), "a~1"));
  raw().remove(path(m) + '/' + raw().children(path(m))[0]);
  const Observation own = take(*store, m, "a~1");
  EXPECT_TRUE(owns(own, "a~1"));
  EXPECT_GT(own.owner.token, token);
}

TEST_F(ZookeeperTest, AReleaseFindsWhatAnotherSessionMade) {
  const auto store = connect(), other = connect();
  const Token token = take(*store, m, "a~1").owner.token;
  release(*other, m, "a~1", token + 1);
  EXPECT_TRUE(owns(observe(*other, m), "a~1"));
  release(*other, m, "a~1", token);
  EXPECT_TRUE(observe(*other, m).is_free());
}

TEST_F(ZookeeperTest, AnEvictedOwnerOfAnotherSessionKeepsItsLeaseAndLosesItsName) {
  const auto store = connect(), other = connect();
  const Observation held = take(*store, m, "a~1", 4s, 2s);
  const Observation waits = take(*other, m, "b~1");
  EXPECT_EQ(waits.owner.id, "a~1");
  const Observation evicted =
      other->evict(m, "a~1", held.owner.token, Eviction::kKeepLease, soon());
  EXPECT_EQ(evicted.owner.id, "");
  EXPECT_FALSE(evicted.is_free());
  EXPECT_EQ(raw().data(path(m)), raw().children(path(m))[0]) << "named on the container";
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "") << "nobody owns, and nobody enters";
  EXPECT_EQ(renew(*store, m, "a~1", held.owner.token).owner.id, "");
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "");
  EXPECT_TRUE(eventually([&] { return owns(take(*other, m, "b~1"), "b~1"); }));
  EXPECT_GE(BootClock::now().time_since_epoch(), held.owner.transition_at.time_since_epoch());
  const Observation next = take(*other, m, "b~1");
  EXPECT_TRUE(owns(renew(*other, m, "b~1", next.owner.token), "b~1"))
      << "an eviction before its term is not of its term";
}

TEST_F(ZookeeperTest, AnOwnerAfterAnEvictionCanBeEvictedToo) {
  const auto store = connect(), other = connect();
  for (const char* id : {"a~1", "b~1", "c~1"}) {
    const Observation held = take(*store, m, id, 100ms, 100ms);
    ASSERT_TRUE(owns(held, id));
    EXPECT_EQ(other->evict(m, id, held.owner.token, Eviction::kKeepLease, soon()).owner.id, "");
    EXPECT_EQ(renew(*store, m, id, held.owner.token).owner.id, "");
    ASSERT_TRUE(eventually([&] { return observe(*other, m).is_free(); }));
  }
}

// It is seen as the owner before it hears of it itself: its process may stand still just then.
TEST_F(ZookeeperTest, WhoIsEvictedBeforeItIsToldThatItOwnsDoesNotOwn) {
  const auto store = connect(), waiter = connect(), other = connect();
  take(*store, m, "a~1");
  const auto watch = waiter->watch(m, "b~1", [] {});
  take(*waiter, m, "b~1");
  take(*other, m, "c~1");
  release(*store, m, "a~1");
  const Observation seen = observe(*other, m);
  ASSERT_EQ(seen.owner.id, "b~1");
  EXPECT_EQ(other->evict(m, "b~1", seen.owner.token, Eviction::kKeepLease, soon()).owner.id, "");
  std::this_thread::sleep_for(200ms);  // what it read when it was woken is too old by then
  const Observation told = take(*waiter, m, "b~1");
  EXPECT_EQ(told.owner.id, "");
  EXPECT_FALSE(told.is_free());
  EXPECT_TRUE(eventually([&] { return owns(take(*other, m, "c~1"), "c~1"); }, 20s));
  EXPECT_TRUE(eventually([&] { return take(*waiter, m, "b~1").owner.id == "c~1"; }))
      << "it queues again";
  release(*other, m, "c~1");
  EXPECT_TRUE(owns(take(*waiter, m, "b~1"), "b~1")) << "that eviction was of another term";
}

TEST_F(ZookeeperTest, AProcessThatEvictsItsOwnWaiterBeforeItOwnsLetsItGo) {
  const auto store = connect(), other = connect();
  take(*store, m, "a~1");
  const auto watch = store->watch(m, "b~1", [] {});
  take(*store, m, "b~1");
  take(*other, m, "c~1");
  release(*store, m, "a~1");
  const Token token = observe(*store, m).owner.token;
  EXPECT_NE(store->evict(m, "b~1", token, Eviction::kKeepLease, soon()).owner.id, "b~1");
  EXPECT_TRUE(eventually([&] { return owns(take(*other, m, "c~1"), "c~1"); }, 20s));
}

TEST_F(ZookeeperTest, OneTransactionRenewsManyAndOneBadOneHarmsNobody) {
  const auto store = connect();
  std::vector<std::string> names;
  std::vector<Claim> claims;
  for (int i = 0; i < 250; ++i) names.push_back(m + "." + std::to_string(1000 + i));
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  Answers answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].token = std::get<Observation>(answers[i]).owner.token;
  }
  raw().remove(path(names[7]) + '/' + raw().children(path(names[7]))[0]);
  store->evict(names[130], "a~1", claims[130].token, Eviction::kKeepLease, soon());
  claims[240].token += 1;
  answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool good = i != 7 && i != 130 && i != 240;
    EXPECT_EQ(owns(std::get<Observation>(answers[i]), "a~1"), good) << i;
  }
  store->release(claims, soon());
}

TEST_F(ZookeeperTest, OfManyTermsTheOneWhoseNodeMayNotBeReadIsDeniedAlone) {
  const auto store = connect();
  std::vector<std::string> names;
  std::vector<Claim> claims;
  for (int i = 0; i < 5; ++i) names.push_back(m + "." + std::to_string(i));
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  Answers answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].token = std::get<Observation>(answers[i]).owner.token;
  }
  ASSERT_EQ(raw().allow(path(names[1]), ZOO_PERM_ADMIN), ZOK);
  ASSERT_EQ(raw().allow(path(names[3]) + '/' + raw().children(path(names[3]))[0], ZOO_PERM_ADMIN),
            ZOK);
  answers = store->contend(claims, soon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i == 1 || i == 3) {
      const auto* error = std::get_if<Error>(&answers[i]);
      EXPECT_TRUE(error && error->errc() == Errc::kDenied) << i;
    } else {
      const auto* seen = std::get_if<Observation>(&answers[i]);
      EXPECT_TRUE(seen && owns(*seen, "a~1")) << i << " is none of it";
    }
  }
  ASSERT_EQ(raw().allow(path(names[1]), ZOO_PERM_ALL), ZOK);
  store->release(claims, soon());
}

TEST_F(ZookeeperTest, ALeaseIsNeverLongerThanTheSessionAllows) {
  const auto store = open_alone(options(6s));
  const Token token = take(*store, m, "a~1", 60s, 30s).owner.token;
  milliseconds longest{};
  EXPECT_TRUE(eventually([&] {
    const Observation seen = renew(*store, m, "a~1", token);
    const milliseconds lease = seen.owner.transition_at - seen.now;
    EXPECT_NEAR(static_cast<double>((*seen.owner.ttl_at - seen.now).count()),
                static_cast<double>(lease.count()) * 2 / 3, 2);
    longest = std::max(longest, lease);
    return lease > 6s * 5 / 6 - 500ms - 100ms;
  }));
  EXPECT_LE(longest, 6s * 5 / 6 - 500ms);
}

// An owner renews less often than the session has to be heard of: the store sees to that itself.
TEST_F(ZookeeperTest, TheLeaseIsWholeForWhoRenewsSeldomAndForWhoComesAfterALongSilence) {
  const auto lease_of = [](const Observation& seen) { return seen.owner.transition_at - seen.now; };
  const auto is_whole = [&] {
    const auto store = open_alone(options(3s));  // a lease of 2 s
    const Token token = take(*store, m, "a~1").owner.token;
    milliseconds renewed{};
    for (int round = 0; round < 3; ++round) {
      std::this_thread::sleep_for(1300ms);
      const Observation seen = renew(*store, m, "a~1", token);
      if (owns(seen, "a~1")) renewed = std::max(renewed, lease_of(seen));
    }
    release(*store, m, "a~1");
    std::this_thread::sleep_for(3500ms);
    return renewed > 1900ms && lease_of(take(*store, m + ".other", "b~1")) > 1500ms;
  };
  bool is_seen = false;  // not where the machine stands still for longer than this session lasts
  for (int tries = 0; tries < 4 && !is_seen; ++tries) is_seen = is_whole();
  EXPECT_TRUE(is_seen);
}

TEST_F(ZookeeperTest, AReleaseOfAnotherTermOfTheSameWireIdChangesNothing) {
  const auto store = connect();
  const Token token = take(*store, m, "a~1").owner.token;
  release(*store, m, "a~1", token + 1);
  EXPECT_TRUE(owns(observe(*store, m), "a~1"));
  release(*store, m, "a~1", token);
  EXPECT_TRUE(observe(*store, m).is_free());
}

TEST_F(ZookeeperTest, ASessionTimeoutBelowThreeTicksIsRefusedWithTheNumbers) {
  ZookeeperOptions too_short = options(4s);
  too_short.tick = 2s;
  EXPECT_THAT(error_of([&] { open_alone(too_short); }), HasSubstr("at least three ticks"));
  // The servers grant 300 s at most.
  ZookeeperOptions too_long = options(2000s);
  too_long.tick = 150s;
  EXPECT_THAT(error_of([&] { take(*open_alone(too_long), m, "a~1"); }),
              ::testing::AllOf(HasSubstr("grant a session timeout of 300000 ms"),
                               HasSubstr("at least 450000 ms")));
}

TEST_F(ZookeeperTest, AFloorAboveTheServersCountIsRefused) {
  const auto store = connect();
  const std::string why = error_of([&] { take(*store, m, "a~1", 60s, 30s, Token{1} << 50); });
  EXPECT_THAT(why, HasSubstr("replaced by older data"));
  release(*store, m, "a~1");
  const Token token = take(*store, m, "a~2").owner.token;
  EXPECT_EQ(take(*store, m, "a~2", 60s, 30s, Token{1} << 50).owner.token, token)
      << "a running term goes on";
}

TEST_F(ZookeeperTest, EachErrorNamesTheServerAndNoneThePassword) {
  const auto stranger = connect();
  ZookeeperOptions mine = options();
  mine.user = "me";
  mine.password = "canary-4711";
  mine.acl = ZookeeperOptions::Acl::kCreator;
  const std::string hidden = m + "-hidden";
  const auto store = open_alone(mine);
  take(*store, hidden, "a~1");
  ZookeeperOptions below = mine;
  below.chroot += "/not-there";
  ZookeeperOptions nobody = mine;
  nobody.servers = "127.0.0.1:1";
  nobody.chroot.clear();
  struct Row {
    std::string error, where;
  };
  const std::string_view name = m;
  for (const Row& row : {
           Row{error_of([&] { observe(*stranger, hidden); }), servers},
           Row{error_of([&] { take(*stranger, m, "a~1", 60s, 30s, Token{1} << 50); }), servers},
           Row{error_of([&] {
                 static_cast<void>(store->observe({&name, 1}, soon(-1ms)));
               }),
               servers},
           Row{error_of([&] { take(*open_alone(below), m, "a~1"); }), servers + "/not-there"},
           Row{error_of([&] {
                 static_cast<void>(open_alone(nobody)->observe({&name, 1}, soon(100ms)));
               }),
               "127.0.0.1:1"},
       }) {
    EXPECT_THAT(row.error, HasSubstr("zookeeper at " + row.where + ": "));
    EXPECT_EQ(row.error.find("canary"), std::string::npos) << row.error;
  }
}

TEST_F(ZookeeperTest, StoresOfOneProcessShareTheirSession) {
  const auto first = open_zookeeper(options()), second = open_zookeeper(options());
  take(*first, m, "a~1");
  take(*second, m, "b~1");
  std::set<std::int64_t> sessions;
  for (const std::string& name : raw().children(path(m))) {
    sessions.insert(raw().stat(path(m) + '/' + name).ephemeralOwner);
  }
  EXPECT_EQ(sessions.size(), 1U);
}

TEST_F(ZookeeperTest, TheEndOfTheStoreEndsItsSessionAtOnce) {
  auto store = connect();
  take(*store, m, "a~1");
  store.reset();
  EXPECT_TRUE(eventually([&] { return raw().children(path(m)).empty(); }, 30s))
      << "it was kept until its timeout";
}

TEST_F(ZookeeperTest, IsDeadInAForkedChildAndLivesOnInItsParent) {
  auto store = connect();
  const Token token = take(*store, m, "a~1").owner.token;
  const pid_t child = fork();
  if (child == 0) {
    const std::string why = error_of([&] { take(*store, m, "a~1"); });
    store.reset();
    _exit(why.find("forked") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(owns(renew(*store, m, "a~1", token), "a~1"));
}

TEST_F(ZookeeperTest, AnObserverIsWokenWhenTheOwnerGoes) {
  const auto store = connect(), watcher = connect();
  take(*store, m, "a~1");
  std::atomic<int> wakes{0};
  const auto watch = watcher->watch(m, {}, [&] { ++wakes; });
  ASSERT_TRUE(watch);
  for (int round = 0; round < 3; ++round) {
    const std::string id = "a~" + std::to_string(round + 1);
    ASSERT_TRUE(owns(take(*store, m, id), id));
    EXPECT_EQ(observe(*watcher, m).owner.id, id);
    release(*store, m, id);
    ASSERT_TRUE(eventually([&] { return wakes == round + 1; }));
    EXPECT_TRUE(observe(*watcher, m).is_free());
  }
}

}  // namespace
}  // namespace simba::zookeeper
