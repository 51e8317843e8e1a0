#include <algorithm>
#include <iterator>
#include <sstream>
#include <thread>

#include "stores/redis/failure.h"
#include "stores/redis/names.h"
#include "stores/redis/redis_fixture.h"
#include "stores/redis/servers.h"

// A cluster whose slots move, and whose nodes die or stand still.
namespace simba::redis {
namespace {

Address address_of(const servers::RedisServer& server) { return {"127.0.0.1", server.port()}; }

class TopologyTest : public OwnServersTest {};

class ClusterTest : public TopologyTest {
 protected:
  void SetUp() override {
    TopologyTest::SetUp();
    if (IsSkipped()) return;
    cluster = std::make_unique<servers::RedisCluster>();
    cluster->start();
    url = cluster->url(kUnguarded);
  }
  void expect_succession_by_a_replica(void (servers::Server::*strike)());
  std::unique_ptr<servers::RedisCluster> cluster;
  std::string url;
};

TEST_F(ClusterTest, EveryMutexIsServedByTheMasterOfItsSlot) {
  const auto store = open(url);
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back("m" + std::to_string(100 + i));
  std::vector<Claim> claims;
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  const Answers taken = store->contend(claims, soon());
  std::array<int, 3> served{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    claims[i].token = observed(taken[i]).owner.token;
    const std::size_t master = cluster->owner(slot_of(names[i]));
    ++served.at(master);
    EXPECT_EQ((*cluster)[master]({"GET", "simba:{" + names[i] + "}"}), "a~1");
  }
  for (const int each : served) EXPECT_GT(each, 0);
  for (const Answer& each : store->contend(claims, soon()))
    EXPECT_EQ(observed(each).owner.id, "a~1");
  EXPECT_EQ(store->list("m1", {}, 100, soon()).size(), 60u);
  store->release(claims, soon());
  EXPECT_TRUE(store->list("m1", {}, 100, soon()).empty());
}

TEST_F(ClusterTest, ASlotThatMovesTakesTermsAndWaitersWithIt) {
  const unsigned slot = slot_of(m);
  const std::size_t from = cluster->owner(slot), to = (from + 1) % 3;
  const Client client(open(url), {});
  Contender owner(client, m, lease(20s, 10s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  ContendOptions options = lease(20s, 10s);
  options.safety_poll = 1s;
  const Client other(open(url + "&client-name=waiter"), {});
  Contender waiter(other, m, options);
  ASSERT_TRUE(eventually([&] { return waiter.is_running(); }));
  const auto store = open(url);
  EXPECT_EQ(observe(*store, m).owner.token, token);
  cluster->begin_move(slot, to);
  // Half moved: a mutex that is not here yet is asked for there.
  ASSERT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(observe(*store, m).owner.token, token); }) == "none";
  }));
  cluster->end_move(slot, from, to);
  ASSERT_EQ(cluster->owner(slot), to);
  EXPECT_EQ(renew(*store, m, owner.wire_id(), token).owner.token, token);
  EXPECT_TRUE(owner.is_owner());
  // The waiter's next poll is sent on, and its subscription follows.
  ASSERT_TRUE(eventually([&] {
    const std::string all = (*cluster)[to]({"CLIENT", "LIST", "TYPE", "pubsub"});
    return all.find("name=waiter") != all.npos;
  })) << "the subscription has not moved";
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }));
  EXPECT_GT(waiter.token(), token);
}

TEST_F(ClusterTest, ATermIsRenewedWhereItsKeysAreThoughTheSlotHasNotMovedYet) {
  const unsigned slot = slot_of(m);
  const std::size_t from = cluster->owner(slot), to = (from + 2) % 3;
  const auto store = open(url);
  const Token token = take(*store, m, "a~1").owner.token;
  cluster->begin_move(slot, to);
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token) << "its keys are still here";
  cluster->move_keys(slot, from, to);
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token) << "asked for there";
  EXPECT_EQ(take(*store, m, "b~1").owner.id, "a~1");
  cluster->end_move(slot, from, to);
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token);
}

// A cluster does not run a script whose keys may be on either side.
TEST_F(ClusterTest, AFreeMutexOfASlotThatIsHalfMovedWaitsForTheOtherHalf) {
  const unsigned slot = slot_of(m);
  const std::size_t from = cluster->owner(slot), to = (from + 2) % 3;
  const auto store = open(url);
  observe(*store, m);
  cluster->begin_move(slot, to);
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }), HasSubstr("on its way to another node"));
  const Client client(store, {});
  Contender contender(client, m, lease(20s, 10s));
  cluster->end_move(slot, from, to);
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }));
}

TEST_F(ClusterTest, ADeadMasterFailsItsOwnMutexesAlone) {
  const auto store = open(url);
  std::vector<std::string> names;
  std::vector<Claim> claims;
  for (int i = 0; i < 30; ++i) names.push_back("m" + std::to_string(100 + i));
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  store->contend(claims, soon());
  std::vector<std::size_t> owners;
  for (const std::string& name : names) owners.push_back(cluster->owner(slot_of(name)));
  (*cluster)[0].kill();
  const Answers answers = store->contend(claims, soon(4s));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* error = std::get_if<Error>(&answers[i]);
    EXPECT_EQ(error != nullptr, owners[i] == 0) << names[i] << (error ? error->what() : "");
  }
}

// Nor do the others wait for it: not while it is asked, nor while the map is learnt anew.
TEST_F(TopologyTest, AStoppedMasterHoldsUpItsOwnMutexesAlone) {
  servers::RedisCluster cluster(
      servers::RedisSettings{.config = {{"cluster-require-full-coverage", "no"}}});
  cluster.start();
  // The one that would be asked first for the map.
  std::size_t stopped = 0;
  for (const std::size_t i : {1U, 2U}) {
    if (address_of(cluster[i]) < address_of(cluster[stopped])) stopped = i;
  }
  const auto store = open(cluster.url("restart-guard=off&connect-timeout=60000"));
  std::vector<std::string> silent, others;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "m" + std::to_string(i);
    (cluster.owner(slot_of(name)) == stopped ? silent : others).push_back(name);
    take(*store, name, "a~1", 0, 300s, 60s);
  }
  ASSERT_FALSE(silent.empty());
  ASSERT_GE(others.size(), 2U);
  cluster[stopped].pause();
  for (int round = 0; round < 2; ++round) {
    EXPECT_NE(error_of([&] { observe(*store, silent[0], soon(1500ms)); }), "none");
    const LocalTime began = BootClock::now();
    for (const std::string& name : others) {
      EXPECT_EQ(observe(*store, name, soon(90s)).owner.id, "a~1") << name;
    }
    EXPECT_LT(BootClock::now() - began, 15s) << "they waited for the share of the silent one";
  }
  // Also in one call with it.
  std::vector<std::string_view> all{silent[0]};
  all.insert(all.end(), others.begin(), others.end());
  const Answers answers = store->observe(all, soon(3s));
  EXPECT_TRUE(std::holds_alternative<Error>(answers[0]));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(observed(answers[i]).owner.id, "a~1");
  cluster[stopped].resume();
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(observe(*store, silent[0], soon(5s)).owner.id, "a~1"); }) ==
           "none";
  }));
}

TEST_F(ClusterTest, WhatTheMapSaysOfTheOthersStaysTrueWhileOneIsInDoubt) {
  Servers servers(std::make_shared<Dialer>(redis_options(url)));
  const auto first = servers.of_slot(0, soon());
  const auto last = servers.of_slot(kSlots - 1, soon());
  ASSERT_NE(first, last);
  servers.doubt(*first);
  const LocalTime now = BootClock::now();  // no time to ask anybody
  EXPECT_EQ(servers.of_slot(kSlots - 1, now), last);
  EXPECT_NE(error_of([&] { servers.of_slot(0, now); }), "none") << "it is asked for again";
  EXPECT_EQ(servers.known(0), first);
  EXPECT_EQ(servers.of_slot(0, soon()), first);
  EXPECT_EQ(servers.of_slot(0, now), first) << "there is a new map";
}

// What the replica had is kept; here it had everything.
void ClusterTest::expect_succession_by_a_replica(void (servers::Server::*strike)()) {
  const std::size_t from = cluster->owner(slot_of(m));
  servers::RedisServer& replica = cluster->add_replica(from);
  const Client client(open(url), {}), other(open(url), {});
  ContendOptions options = lease(40s, 20s);
  options.safety_poll = 60s;  // only a message is in time
  Contender owner(client, m, options);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  Contender waiter(other, m, options);
  servers::RedisServer& master = (*cluster)[from];
  ASSERT_TRUE(eventually([&] { return master({"ZCARD", "simba:{m}:contender"}) == "1"; }));
  ASSERT_TRUE(eventually(
      [&] { return replica.info("slave_repl_offset") == master.info("master_repl_offset"); }));
  const auto store = open(url);
  observe(*store, m);
  (master.*strike)();
  ASSERT_TRUE(eventually([&] { return replica.info("role") == "master"; }, 40s));
  // Also for one that nobody listens with, and that knows the old map.
  ASSERT_TRUE(eventually([&] {
    return error_of([&] {
             const Claim claim{m, "c~1", 0, 0, 20s, 10s};
             const Observation held = observed(store->contend({&claim, 1}, soon(2s)).at(0));
             EXPECT_EQ(held.owner.token, token);
           }) == "none";
  }));
  EXPECT_EQ(renew(*store, m, owner.wire_id(), token).owner.token, token);
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.released(), 0);
  EXPECT_EQ(waiter.acquired(), 0);
  ASSERT_TRUE(eventually([&] {
    return replica({"PUBSUB", "NUMSUB", "simba:{m}"}).ends_with("\n2");
  })) << "subscriptions follow the master";
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); })) << "it was not woken";
  EXPECT_GT(waiter.token(), token);
}

TEST_F(ClusterTest, AReplicaThatSucceedsItsMasterKeepsTermsAndWakesWaiters) {
  expect_succession_by_a_replica(&servers::Server::kill);
}

TEST_F(ClusterTest, AReplicaThatSucceedsAStoppedMasterIsFound) {
  expect_succession_by_a_replica(&servers::Server::pause);
}

// It sends no command that would be told of another master.
TEST_F(ClusterTest, WhoOnlyWatchesFollowsItsMutexAndLeavesTheNodeThatLostIt) {
  const std::string name = "watcher";
  const std::size_t from = cluster->owner(slot_of(m)), to = (from + 1) % 3, third = (from + 2) % 3;
  const auto watcher = open("redis+cluster://" + (*cluster)[third].address() +
                            "?restart-guard=off&client-name=" + name);
  const Hints hints(*watcher, m);
  ASSERT_TRUE(hints.awaits_live()) << "nobody has told it where";
  const auto is_at = [&](std::size_t node) {
    return (*cluster)[node]({"CLIENT", "LIST"}).find("name=" + name) != std::string::npos;
  };
  EXPECT_TRUE(is_at(from));
  cluster->move_all(from, to);
  ASSERT_TRUE(eventually([&] {
    return (*cluster)[to]({"PUBSUB", "NUMSUB", "simba:{m}"}).ends_with("\n1");
  })) << "the subscription has not moved";
  const auto owner = open(url);
  take(*owner, m, "a~1");
  const int before = hints.count();
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > before; }));
  EXPECT_TRUE(eventually([&] { return !is_at(from); })) << "nothing is served there any more";
}

// Who listened there has nothing to do, and is told that it has again.
TEST_F(ClusterTest, AMutexThatComesBackToANodeIsListenedForThereAgain) {
  const unsigned slot = slot_of(m);
  const std::size_t home = cluster->owner(slot), away = (home + 1) % 3;
  const auto watcher = open(url);
  const Hints hints(*watcher, m);
  ASSERT_TRUE(hints.awaits_live());
  const auto hear_at = [&](std::size_t node, const char* listeners) {
    return eventually([&] {
      return (*cluster)[node]({"PUBSUB", "NUMSUB", "simba:{m}"}).ends_with(listeners);
    });
  };
  ASSERT_TRUE(hear_at(home, "\n1"));
  for (const auto& [from, to] : {std::pair{home, away}, std::pair{away, home}}) {
    cluster->begin_move(slot, to);
    cluster->end_move(slot, from, to);
    EXPECT_TRUE(hear_at(to, "\n1")) << from << " to " << to;
    EXPECT_TRUE(hear_at(from, "\n0")) << from << " to " << to;
  }
}

TEST_F(ClusterTest, NodesThatServeNothingAreForgottenWithTheNextMap) {
  Servers servers(std::make_shared<Dialer>(redis_options(url)));
  servers.learn(soon());
  EXPECT_EQ(servers.count(), 3u);
  {
    const auto in_use = servers.at({"127.0.0.1", 1});  // as one that ASK names
    servers.moved(slot_of("m"), {"127.0.0.1", 2});
    servers.learn(soon());
    EXPECT_EQ(servers.count(), 4u) << "a call is under way";
  }
  servers.learn(soon());
  EXPECT_EQ(servers.count(), 3u);
}

// It was taken out, or never was in: it lives, and its map is empty.
TEST_F(ClusterTest, ANodeThatIsInNoClusterAnyMoreIsNotTheLastOneAsked) {
  servers::RedisServer lone({.config = {{"cluster-enabled", "yes"}, {"cluster-port", "BUS"}}});
  lone.start();
  // A path comes before all hosts.
  std::string path = lone.socket();
  for (std::size_t at = 0; (at = path.find('/', at)) != path.npos;) path.replace(at, 1, "%2F");
  const std::string guest = "redis+cluster://" + path;
  const auto store = open(guest + ',' + cluster->addresses() + '?' + kUnguarded);
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "a~1");
  EXPECT_THAT(error_of([&] { take(*open(guest), m, "a~1"); }), HasSubstr("name other nodes"));
}

// What the replica did not have is forgotten, and nobody keeps what the new master denies.
TEST_F(ClusterTest, ATermThatTheReplicaDidNotHaveEndsAndContentionGoesOn) {
  const std::size_t from = cluster->owner(slot_of(m));
  servers::RedisServer& replica = cluster->add_replica(from);
  // It knows no such password, and does not get through to its master again.
  replica({"CONFIG", "SET", "masterauth", "nonsense"});
  (*cluster)[from]({"CLIENT", "KILL", "TYPE", "replica"});
  ASSERT_TRUE(eventually([&] { return replica.info("master_link_status") == "down"; }));
  const Client client(open(url), {});
  Contender owner(client, m, lease(4s, 2s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  (*cluster)[from].kill();
  ASSERT_TRUE(eventually([&] { return replica.info("role") == "master"; }, 40s));
  EXPECT_TRUE(eventually([&] { return owner.acquired() > 1 && owner.is_owner(); }));
  EXPECT_EQ(owner.released(), owner.acquired() - 1) << "it was told of each end";
  EXPECT_GT(owner.token(), token);
}

// It lives, has heard nothing of its successor, and of the others knows what was once or nothing.
TEST_F(ClusterTest, AMasterThatWasCutOffIsNotBelievedAgainAndAgain) {
  std::size_t lost = 0;  // the one that is asked first by who knows nothing
  for (const std::size_t i : {1U, 2U}) {
    if (address_of((*cluster)[i]) < address_of((*cluster)[lost])) lost = i;
  }
  std::string its = "l", other = "o";
  while (cluster->owner(slot_of(its)) != lost) its += 'l';
  while (cluster->owner(slot_of(other)) == lost) other += 'o';
  const Address successor = address_of(cluster->add_replica(lost));
  const Address neighbour = address_of((*cluster)[cluster->owner(slot_of(other))]);
  cluster->cut_off_and_succeed(lost);
  Servers servers(std::make_shared<Dialer>(redis_options(url)));
  servers.learn(soon());
  ASSERT_EQ(servers.known(slot_of(other)), nullptr) << "another was asked first";
  EXPECT_EQ(servers.of_slot(slot_of(other), soon())->address(), neighbour);
  const auto expect_the_new_map = [&] {
    EXPECT_EQ(servers.of_slot(slot_of(its), soon())->address(), successor);
    EXPECT_EQ(servers.of_slot(slot_of(other), soon())->address(), neighbour);
  };
  expect_the_new_map();
  for (int round = 0; round < 3; ++round) {
    servers.learn(soon());
    expect_the_new_map();
    servers.doubt(*servers.of_slot(slot_of(round == 1 ? other : its), soon()));
    expect_the_new_map();
  }
  // It alone has a connection.
  for (const auto& node : servers.masters(soon())) {
    node->leave(Error(Errc::kUnreachable, "lost"));
  }
  servers.at(address_of((*cluster)[lost]))->link(soon());
  servers.learn(soon());
  expect_the_new_map();
}

// A replica acknowledges what its own master has been told.
TEST_F(ClusterTest, AGrantCountsOnceAReplicaOfItsMasterHasIt) {
  const std::size_t from = cluster->owner(slot_of(m));
  const servers::RedisServer& replica = cluster->add_replica(from);
  const auto store = open(url + "&replicas=1");
  const Token token = take(*store, m, "a~1").owner.token;
  EXPECT_EQ(replica.info("master_link_status"), "up");
  EXPECT_NE(replica({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot_of(m)), "9"}), "")
      << "the replica had it before the answer";
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token);
  std::string other = "o";
  while (cluster->owner(slot_of(other)) == from) other += 'o';
  EXPECT_TRUE(lacks_a_replica([&](LocalTime by) { take(*store, other, "a~1", 0, 20s, 10s, by); }));
  EXPECT_TRUE(observe(*store, other).is_free()) << "given back";
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token);
}

TEST_F(TopologyTest, AClusterIsServedByTls) {
  try {
    servers::RedisCluster cluster(
        servers::RedisSettings{.transport = servers::RedisSettings::Transport::kTls, .config = {}});
    cluster.start();
    const auto store = open(cluster.url(kUnguarded));
    for (int i = 0; i < 12; ++i) {
      const std::string name = "m" + std::to_string(i);
      EXPECT_EQ(take(*store, name, "a~1").owner.id, "a~1");
      EXPECT_EQ(cluster[cluster.owner(slot_of(name))]({"GET", "simba:{" + name + "}"}), "a~1");
    }
    const auto other = open(cluster.url(kUnguarded));
    EXPECT_EQ(observe(*other, "m0").owner.id, "a~1");
    const Hints hints(*other, "m0");
    ASSERT_TRUE(hints.awaits_live());
    release(*store, "m0", "a~1");
    EXPECT_TRUE(eventually([&] { return hints.count() > 1; }));
    EXPECT_THAT(
        error_of([&] { take(*open("rediss+cluster://" + cluster.addresses()), "m1", "b~1"); }),
        HasSubstr("ca-file"));
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
}

// Users of every node, with the rights that are told to an administrator.
TEST_F(ClusterTest, AContenderNeedsOnlyWhatIsGrantedInACluster) {
  std::istringstream acl(contender_acl(RedisOptions::Topology::kCluster));
  std::vector<std::string> rules{std::istream_iterator<std::string>(acl), {}};
  std::replace(rules.begin(), rules.end(), std::string(">PASSWORD"), std::string(">secret"));
  const auto everywhere = [&](const std::vector<std::string>& command) {
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ((*cluster)[i](command), "OK");
  };
  everywhere(rules);
  const std::string as = std::string(url).insert(url.find("//") + 2, "contender:secret@");
  const auto store = open(as), other = open(as);
  const Token token = take(*store, m, "a~1", 0, 60s, 30s).owner.token;
  const Hints hints(*other, m);
  ASSERT_TRUE(hints.awaits_live());
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1");
  EXPECT_EQ(store->list(m, {}, 10, soon()).size(), 1U);
  // Half moved: the other half is asked for.
  const unsigned slot = slot_of(m);
  const std::size_t from = cluster->owner(slot), to = (from + 1) % 3;
  cluster->begin_move(slot, to);
  cluster->move_keys(slot, from, to);
  EXPECT_EQ(renew(*store, m, "a~1", token, 60s, 30s).owner.token, token);
  everywhere({"ACL", "SETUSER", "contender", "-asking"});
  EXPECT_THAT(error_of([&] { renew(*store, m, "a~1", token, 60s, 30s); }), HasSubstr("+asking"));
  everywhere({"ACL", "SETUSER", "contender", "+asking"});
  cluster->end_move(slot, from, to);
  EXPECT_EQ(renew(*store, m, "a~1", token, 60s, 30s).owner.token, token);
  const int before = hints.count();
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > before; }));
  everywhere({"ACL", "SETUSER", "contender", "-cluster"});
  const std::string said = error_of([&] { take(*open(as), m, "a~2"); });
  EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kDenied, "").code().message()));
  EXPECT_THAT(said, HasSubstr("+cluster|slots"));
}

TEST_F(ClusterTest, AServerOfAClusterAskedAsOneSaysWhatToWrite) {
  const auto store = open((*cluster)[0].url(kUnguarded));
  std::string said;
  for (int i = 0; i < 20 && said.find("redis+cluster") == said.npos; ++i) {
    said = error_of([&] { take(*store, "m" + std::to_string(i), "a~1"); });
  }
  EXPECT_THAT(said, HasSubstr("redis+cluster"));
}

}  // namespace
}  // namespace simba::redis
