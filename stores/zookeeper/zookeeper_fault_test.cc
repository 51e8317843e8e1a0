#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "stores/kit/per_process.h"
#include "stores/zookeeper/fault_fixture.h"

// Faults, on servers of our own: servers that are killed, wiped, without quorum, or that refuse.
namespace simba::zookeeper {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(FaultTest, AServerThatIsKilledAndComesBackIsRiddenOut) {
  start();
  const auto store = open_alone(options(40s));
  const Token token = take(*store, m, "a~1").owner.token;
  server->kill();
  EXPECT_TRUE(eventually([&] {
    const std::string why = error_of([&] {
      const std::string_view name = m;
      static_cast<void>(store->observe({&name, 1}, soon(100ms)));
    });
    return why.find("zookeeper at " + servers + ": no server") != std::string::npos &&
           why.find("are they up") != std::string::npos;
  }));
  server->start();
  Observation seen;
  ASSERT_TRUE(
      eventually([&] { return error_of([&] { seen = renew(*store, m, "a~1", token); }).empty(); }));
  EXPECT_TRUE(owns(seen, "a~1")) << "the session is on the server's disk";
  release(*store, m, "a~1");
  ASSERT_TRUE(eventually([&] { return error_of([&] { seen = take(*store, m, "b~1"); }).empty(); }));
  EXPECT_GT(seen.owner.token, token);
}

// Who is refused holds up nobody, however often it asks, and is let in again by itself.
TEST_F(FaultTest, AServerWithoutItsDataIsNoticedByTheToken) {
  start();
  {
    Raw raw_client(servers);
    raw_client.create("/simba", {}, ZOO_CONTAINER);
    for (int i = 0; i < 100; ++i) raw_client.create("/filler" + std::to_string(i));
  }
  auto store = open_alone(options(3s));
  const Token token = take(*store, m, "a~1").owner.token;
  server->stop();
  server = nullptr;
  start();  // another one
  store = connect_straight();
  const auto other = connect_straight();
  const auto watch = store->watch(m, "a~2", [] {});  // as a contender has
  const auto ask = [&] { return take(*store, m, "a~2", 60s, 30s, token); };
  for (const std::string id : {"b~1", "b~2"}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(error_of(ask), HasSubstr("replaced by older data, or another ensemble answers"));
    }
    EXPECT_TRUE(owns(take(*other, m, id), id)) << "it stands behind who was refused";
    EXPECT_EQ(ask().owner.id, id) << "it waits as everybody does";
    release(*other, m, id);
  }
  while (static_cast<Token>(raw().stat("/later").czxid) < token) {
    raw().remove("/later");
    raw().create("/later");
  }
  EXPECT_THAT(error_of(ask), HasSubstr("replaced by older data")) << "its place is of before";
  const Observation again = ask();
  EXPECT_TRUE(owns(again, "a~2"));
  EXPECT_GT(again.owner.token, token);
}

TEST_F(FaultTest, AContainerThatIsReapedIsMadeAgainAndTheTokenGrows) {
  servers::ZooKeeperSettings settings;
  settings.java = {"-Dznode.container.checkIntervalMs=50"};
  start(settings);
  const auto store = connect_straight();
  Token last = 0;
  for (int round = 0; round < 5; ++round) {
    const std::string id = "a~" + std::to_string(round);
    const Observation held = take(*store, m, id);
    ASSERT_TRUE(owns(held, id));
    EXPECT_GT(held.owner.token, last);
    EXPECT_TRUE(queue().at(0).ends_with("-latch-0000000000")) << "the count begins anew";
    last = held.owner.token;
    release(*store, m, id);
    ASSERT_TRUE(eventually([&] { return !raw().exists(path(m)); }));
    EXPECT_TRUE(observe(*store, m).is_free());
  }
}

TEST_F(FaultTest, AContainerThatIsReapedBetweenTwoRequestsIsMadeAgain) {
  servers::ZooKeeperSettings settings;
  settings.java = {"-Dznode.container.checkIntervalMs=1", "-Dznode.container.maxPerMinute=1000000"};
  start(settings);
  const auto store = connect_straight();
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const std::string id = "a~" + std::to_string(round);
    EXPECT_EQ(error_of([&] { take(*store, m, id); }), "") << round;
    release(*store, m, id);
  }
}

TEST_F(FaultTest, AnEvictionInAContainerThatWasMadeAgainIsNotTakenForTheLastOneThere) {
  servers::ZooKeeperSettings settings;
  settings.java = {"-Dznode.container.checkIntervalMs=50"};
  start(settings);
  const auto store = connect_straight(), other = connect_straight(), observer = connect_straight();
  for (const std::string id : {"a~1", "a~2"}) {
    const Observation held = take(*store, m, id);
    other->evict(m, id, held.owner.token, Eviction::kKeepLease, soon());
    EXPECT_EQ(raw().stat(path(m)).version, 1);
    EXPECT_EQ(observe(*observer, m).owner.id, "") << id;
    release(*store, m, id);
    ASSERT_TRUE(eventually([&] { return !raw().exists(path(m)); }));
  }
}

TEST_F(FaultTest, AChrootIsALayerBelowWhichEverythingIsTheSame) {
  start();
  ASSERT_EQ(raw().create("/app"), ZOK);
  ZookeeperOptions below = options(6s);
  below.chroot = "/app";
  const auto store = open_alone(below);
  const Token token = take(*store, m, "a~1").owner.token;
  EXPECT_TRUE(owns(renew(*store, m, "a~1", token), "a~1"));
  EXPECT_EQ(raw().children("/app/simba/" + m).size(), 1U);
  EXPECT_FALSE(raw().exists("/simba"));
  std::atomic<int> wakes{0};
  const auto watch = store->watch(m, "b~1", [&] { ++wakes; });
  take(*store, m, "b~1");
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return wakes == 1; }));
  EXPECT_TRUE(owns(take(*store, m, "b~1"), "b~1"));
  below.chroot = "/nowhere";
  EXPECT_THAT(error_of([&] { take(*open_alone(below), m, "a~1"); }),
              HasSubstr("make the chroot of the URL first"));
}

TEST_F(FaultTest, AnotherBaseCanBeDeep) {
  start();
  ZookeeperOptions deep = options(6s);
  deep.base = "/company/locks";
  const auto store = open_alone(deep);
  EXPECT_TRUE(owns(take(*store, m, "a~1"), "a~1"));
  EXPECT_EQ(raw().children("/company/locks/" + m).size(), 1U);
}

TEST_F(FaultTest, TheNodesOfAUserAreItsOwnAndAnybodyMayRead) {
  start();
  ZookeeperOptions mine = options(6s);
  mine.user = "me";
  mine.password = "canary";
  const auto store = open_alone(mine), stranger = connect_straight();
  const Observation held = take(*store, m, "a~1");
  ASSERT_TRUE(owns(held, "a~1"));
  EXPECT_THAT(raw().acl(path(m)), ElementsAre("digest:me 31", "world:anyone 1"));
  EXPECT_THAT(raw().acl(path(m) + '/' + queue().at(0)),
              ElementsAre("digest:me 31", "world:anyone 1"));
  // An observer needs no write permission.
  EXPECT_EQ(observe(*stranger, m).owner.id, "a~1");
  EXPECT_EQ(stranger->list(m, {}, 10, soon()).size(), 1U);
  // Who contends does.
  for (const auto& attempt : std::vector<std::function<void()>>{
           [&] { take(*stranger, m, "b~1"); }, [&] { take(*stranger, m + "-of-mine", "b~1"); },
           [&] { release(*stranger, m, "a~1"); },
           [&] { stranger->evict(m, "a~1", held.owner.token, Eviction::kKeepLease, soon()); },
           [&] { stranger->evict(m, "a~1", held.owner.token, Eviction::kFreeNow, soon()); }}) {
    const std::string why = error_of(attempt);
    EXPECT_THAT(why, HasSubstr("the ACL of the node does not allow it"));
    EXPECT_EQ(why.find("canary"), std::string::npos);
  }
  EXPECT_TRUE(owns(renew(*store, m, "a~1", held.owner.token), "a~1"));
  ZookeeperOptions wrong = mine;
  wrong.password = "other";
  EXPECT_THAT(error_of([&] { take(*open_alone(wrong), m, "b~1"); }), HasSubstr("ACL"));
}

// What docs/zookeeper.md says that one needs; and that each of it is.
TEST_F(FaultTest, AContenderNeedsToCreateDeleteAndReadAndWhoEvictsToWriteToo) {
  start();
  ASSERT_EQ(raw().run("create /simba \"\" world:anyone:cdr"), ZOK);
  const auto store = open_alone(options(6s)), other = connect_straight();
  const auto mutex_for = [&](const std::string& permissions) {
    std::string mutex = m + '-' + permissions;
    EXPECT_EQ(raw().run("create " + path(mutex) + " \"\" world:anyone:" + permissions), ZOK);
    return mutex;
  };
  const auto is_denied = [&](const std::function<void()>& attempt) {
    return error_of(attempt).find("the ACL of the node does not allow it") != std::string::npos;
  };

  const std::string contended = mutex_for("cdr"), evicted = mutex_for("cdrw");
  const Token token = take(*store, contended, "a~1").owner.token;
  EXPECT_TRUE(owns(renew(*store, contended, "a~1", token), "a~1"));
  EXPECT_TRUE(
      is_denied([&] { other->evict(contended, "a~1", token, Eviction::kKeepLease, soon()); }));
  release(*store, contended, "a~1");
  EXPECT_TRUE(owns(take(*other, contended, "b~1"), "b~1"));
  const Token evicted_token = take(*store, evicted, "a~1").owner.token;
  other->evict(evicted, "a~1", evicted_token, Eviction::kKeepLease, soon());
  EXPECT_FALSE(owns(renew(*store, evicted, "a~1", evicted_token), "a~1"));

  const std::string watched = mutex_for("r");
  EXPECT_TRUE(observe(*other, watched).is_free());
  EXPECT_TRUE(is_denied([&] { take(*store, watched, "a~1"); }));
  for (const char* lacking : {"dr", "cd"}) {
    const std::string mutex = mutex_for(lacking);
    EXPECT_TRUE(is_denied([&] { take(*store, mutex, "a~1"); })) << lacking;
  }
  const std::string kept = mutex_for("cr");
  take(*store, kept, "a~1");
  EXPECT_TRUE(is_denied([&] { release(*store, kept, "a~1"); }));
}

TEST_F(FaultTest, WithTheAclOfTheCreatorNobodyElseReads) {
  start();
  ZookeeperOptions mine = options(6s);
  mine.user = "me";
  mine.password = "secret";
  mine.acl = ZookeeperOptions::Acl::kCreator;
  const auto store = open_alone(mine), stranger = connect_straight();
  EXPECT_TRUE(owns(take(*store, m, "a~1"), "a~1"));
  EXPECT_THAT(error_of([&] { observe(*stranger, m); }), HasSubstr("ACL"));
  Raw friendly(servers, "me:secret");
  EXPECT_THAT(friendly.acl(path(m)), ElementsAre("digest:me 31"));
}

// Counted by the server: what it sends for one hand-over does not grow with those who wait.
TEST_F(FaultTest, WhatTheServerSendsForAHandOverIsTheSameForFewAndForManyWaiters) {
  start();
  const auto store = open_alone(options(6s));
  const auto sent_for_one = [&](const std::string& mutex, int waiters) {
    std::atomic<int> wakes{0};
    std::vector<std::unique_ptr<Watch>> watches;
    const auto id = [](int i) { return "c~" + std::to_string(i); };
    for (int i = 0; i <= waiters; ++i) {
      watches.push_back(store->watch(mutex, id(i), [&] { ++wakes; }));
      take(*store, mutex, id(i));
    }
    std::int64_t least = std::numeric_limits<std::int64_t>::max();  // a ping may come in between
    for (int i = 0; i < 4; ++i) {
      const std::int64_t before = server->monitor("zk_packets_sent");
      release(*store, mutex, id(i));
      EXPECT_TRUE(eventually([&] { return wakes == i + 1; }));
      EXPECT_TRUE(owns(take(*store, mutex, id(i + 1)), id(i + 1)));
      least = std::min(least, server->monitor("zk_packets_sent") - before);
    }
    return least;
  };
  const std::int64_t few = sent_for_one(m + "-few", 5);
  EXPECT_GT(few, 0);
  EXPECT_LE(sent_for_one(m + "-many", 60), few + 2);
}

// A watch cannot be taken back from a server that stays connected, but each is of a node, and a
// waiter that gives up takes its node with it: what is left is the one of the owner's node.
TEST_F(FaultTest, WatchesOfWaitersThatGaveUpDoNotGrowInNumber) {
  start();
  const auto owner = connect_straight(), store = open_alone(options(30s));
  const auto watches = [&] {
    const std::string all = server->ask("wchs");
    const std::size_t at = all.find("Total watches:");
    return at == std::string::npos ? -1 : std::stoi(all.substr(at + 14));
  };
  take(*owner, m, "owner~1");
  const auto id = [](int i) { return "w~" + std::to_string(i); };
  std::vector<std::unique_ptr<Watch>> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(store->watch(m, id(i), [] {}));
    EXPECT_EQ(take(*store, m, id(i)).owner.id, "owner~1");
    if (i % 10 != 9) continue;  // ten at a time, who give up from the front, or from the back
    for (int k = 0; k < 10; ++k) release(*store, m, id(i % 20 == 9 ? i - 9 + k : i - k));
    crowd.clear();
  }
  EXPECT_TRUE(eventually([&] { return watches() == 1; })) << watches();
  EXPECT_EQ(queue().size(), 1U);
  release(*owner, m, "owner~1");
  EXPECT_TRUE(eventually([&] { return watches() == 0; })) << watches();
}

TEST_F(FaultTest, AServerWithoutQuorumGivesAnErrorAndThenAMutex) {
  servers::ZooKeeperSettings settings;
  settings.tick = 200ms;
  settings.java = {"-Dreadonlymode.enabled=true"};
  servers::ZooKeeperEnsemble ensemble(settings);
  ensemble[0].launch();
  ASSERT_TRUE(eventually([&] {
    return ensemble[0].ask("srvr").find("read-only") != std::string::npos ||
           ensemble[0].ask("isro") == "ro";
  }));
  ZookeeperOptions made;
  made.servers = ensemble.addresses();
  made.session_timeout = 1200ms;
  made.tick = 200ms;
  const auto store = open_alone(made);
  const Claim claim{m, "a~1", 0, 0, 60s, 30s};
  EXPECT_THAT(error_of([&] {
                static_cast<void>(store->contend({&claim, 1}, soon(1s)));
              }),
              HasSubstr("do they have a quorum?"));
  ensemble[1].launch();
  Observation seen;
  ASSERT_TRUE(eventually([&] { return error_of([&] { seen = take(*store, m, "a~1"); }).empty(); }));
  EXPECT_TRUE(owns(seen, "a~1"));
}

TEST_F(FaultTest, AServerThatDoesNotExistIsAnErrorWithinTheDeadline) {
  for (const char* nobody : {"127.0.0.1:1", "no-such-host.invalid:2181"}) {
    ZookeeperOptions made;
    made.servers = nobody;
    const auto store = open_alone(made);
    const LocalTime began = BootClock::now();
    const Claim claim{"m", "a~1", 0, 0, 60s, 30s};
    EXPECT_NE(error_of([&] { static_cast<void>(store->contend({&claim, 1}, began + 200ms)); }), "");
    EXPECT_LT(BootClock::now() - began, 15s);
  }
}

// Who opens a store holds a lock meanwhile, which nobody would let go of in a child.
TEST_F(FaultTest, AChildThatWasForkedWhileAStoreWasBeingOpenedOpensItsOwn) {
  ZookeeperOptions nobody;
  nobody.servers = "127.0.0.1:1";
  std::atomic<bool> done{false};
  std::thread opener([&] {
    while (!done) open_zookeeper(nobody);
  });
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const auto store = open_zookeeper(nobody);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "it waited for ever, in round " << round;
  }
  done = true;
  opener.join();
}

// The first use of what stores share is made apart from the others: a hundred of them.
template <int N>
struct Shared {};

template <int N>
bool is_had_by_a_child_of_its_first_use() {
  const auto get = [] {
    kit::PerProcess<Shared<N>>::get("it", [] { return std::make_shared<Shared<N>>(); });
  };
  std::atomic<bool> begins{false};
  std::thread first([&] {
    begins = true;
    get();
  });
  while (!begins) {
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    get();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  first.join();
  return status == 0;
}

TEST(PerProcess, AChildThatIsForkedInTheMidstOfTheFirstUseWaitsForNobody) {
  [&]<int... kRounds>(std::integer_sequence<int, kRounds...>) {
    EXPECT_TRUE((is_had_by_a_child_of_its_first_use<kRounds>() && ...));
  }
  (std::make_integer_sequence<int, 100>());
}

// kazoo 730: what comes after the last number sorts before all others.
class CountTest : public FaultTest {
 protected:
  // A server whose container of `m` has had that many children, and has one that is no latch.
  void start_with(int count) {
    if (std::string(SIMBA_JAVA_CLASSES).empty()) {
      GTEST_SKIP() << "there was no javac when this was built (Debian: default-jdk-headless)";
    }
    start();
    {
      Raw client(servers);
      client.create("/simba");
      client.create(path(m), {}, ZOO_CONTAINER);
      client.create(path(m) + "/foreign");
    }
    server->stop();
    servers::Command command;
    command.words = {"java",
                     "-cp",
                     std::string(SIMBA_JAVA_CLASSES) +
                         ":/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar",
                     "SetCount",
                     server->data().string(),
                     path(m),
                     std::to_string(count)};
    servers::Process(command).wait(10s);
    server->start();
  }
};

TEST_F(CountTest, Kazoo730WhenItIsNearlyUsedUpTheQueueRunsEmptyAndItBeginsAnew) {
  start_with(static_cast<int>(kLastNumber) - 1);
  if (IsSkipped()) return;
  const auto store = connect_straight(), other = connect_straight();
  const Token token = take(*store, m, "a~1").owner.token;
  EXPECT_TRUE(queue().at(0).ends_with(std::to_string(kLastNumber - 1)));
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1") << "the last number";
  EXPECT_THAT(error_of([&] { take(*other, m, "c~1"); }), HasSubstr("nearly used up"));
  EXPECT_EQ(queue().size(), 2U) << "who was turned away leaves nothing behind";
  EXPECT_TRUE(owns(renew(*store, m, "a~1", token), "a~1"));
  release(*store, m, "a~1");
  EXPECT_TRUE(owns(take(*other, m, "b~1"), "b~1"));
  release(*other, m, "b~1");
  raw().remove(path(m) + "/foreign");
  EXPECT_THAT(error_of([&] { take(*other, m, "c~1"); }), HasSubstr("nearly used up"));
  const Observation again = take(*other, m, "c~1");
  EXPECT_TRUE(owns(again, "c~1"));
  EXPECT_GT(again.owner.token, token);
  EXPECT_TRUE(queue().at(0).ends_with("-0000000000"));
}

TEST_F(CountTest, Kazoo730AfterTheLastNumberNobodyOfOursOvertakesTheOwner) {
  start_with(2'147'483'646);
  if (IsSkipped()) return;
  const auto store = connect_straight();
  ASSERT_EQ(raw().create(path(m) + "/_c_curator-latch-", "curator", ZOO_EPHEMERAL_SEQUENTIAL), ZOK);
  ASSERT_EQ(raw().create(path(m) + "/x", {}, ZOO_EPHEMERAL_SEQUENTIAL), ZOK);
  ASSERT_TRUE(raw().children(path(m)).at(0).ends_with("-2147483646"));
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }), HasSubstr("nearly used up"));
  EXPECT_EQ(observe(*store, m).owner.id, "curator");
  EXPECT_EQ(queue().size(), 1U);
}

}  // namespace
}  // namespace simba::zookeeper
