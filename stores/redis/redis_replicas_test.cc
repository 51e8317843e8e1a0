#include <filesystem>
#include <set>
#include <thread>

#include "stores/redis/redis_fixture.h"
#include "testing/servers/relay.h"

// With replicas=n: what counts once n replicas have it, and who waits for them meanwhile.
namespace simba::redis {
namespace {

class ReplicasTest : public OwnServersTest {};

TEST_F(ReplicasTest, AGrantThatTooFewReplicasHaveIsGivenBack) {
  servers::RedisServer master, replica;
  master.start();
  replica.start();
  const auto store = open(master.url("restart-guard=off&replicas=1"));
  EXPECT_TRUE(lacks_a_replica([&](LocalTime by) { take(*store, m, "a~1", 0, 20s, 10s, by); },
                              "it was given back"));
  EXPECT_EQ(master({"EXISTS", "simba:{m}"}), "0") << "given back";
  replica.follow(master);
  ASSERT_TRUE(eventually([&] { return replica.info("master_link_status") == "up"; }));
  const Token token = take(*store, m, "a~1", 0, 60s, 30s).owner.token;
  EXPECT_EQ(replica({"GET", "simba:{m}"}), "a~1") << "the replica had it before the answer";
  // A renewal without them is none; others are not held up by it.
  replica.pause();
  std::thread slow([&] {
    EXPECT_THAT(error_of([&] { renew(*store, m, "a~1", token, 60s, 30s, soon(12s)); }),
                HasSubstr("0 of 1 replicas"));
  });
  const LocalTime began = BootClock::now();
  EXPECT_EQ(observe(*store, m).owner.token, token);
  EXPECT_LT(BootClock::now() - began, 6s) << "it waited behind WAIT";
  slow.join();
  replica.resume();
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token); }) ==
           "none";
  }));
}

// The answer to a take was lost, and it is asked again under the same id: each refusal would give
// the lease that nobody has another life.
TEST_F(ReplicasTest, AGrantThatIsAskedForAgainAndRefusedIsGivenBackToo) {
  servers::RedisServer master;
  master.start();
  take(*open(master.url(kUnguarded)), m, "a~1", 0, 120s, 60s);
  const auto store = open(master.url("restart-guard=off&replicas=1"));
  EXPECT_TRUE(lacks_a_replica([&](LocalTime by) { take(*store, m, "b~1", 0, 20s, 10s, by); }));
  EXPECT_EQ(master({"GET", "simba:{m}"}), "a~1") << "not another's";
  EXPECT_TRUE(lacks_a_replica([&](LocalTime by) { take(*store, m, "a~1", 0, 120s, 60s, by); }));
  EXPECT_EQ(master({"EXISTS", "simba:{m}", "simba:{m}:token", "simba:{m}:lease"}), "0");
}

// It may come late, and would end the next term of the same id under its owner.
TEST_F(ReplicasTest, AnIdWhoseGrantWasGivenBackWithoutAnAnswerIsNotUsedAgain) {
  servers::RedisServer master;
  master.start();
  servers::Relay relay(master.port());
  const std::string query = "?restart-guard=off&replicas=1";
  const Client client(open("redis://127.0.0.1:" + std::to_string(relay.port()) + query), {});
  Admin ear(master.url());
  ear.subscribe({"simba:{m}"});
  // A release that has freed something is answered by that, and nothing else is.
  relay.lie([](std::string_view said) { return said == ":1\r\n" ? "" : std::string(said); });
  ContendOptions options = lease(60s, 30s);
  options.call_deadline = 1s;
  Contender contender(client, m, options);
  std::set<std::string> ids;
  while (ids.size() < 3) {
    const std::string message = ear.message();
    ASSERT_NE(message, "none") << ids.size();
    if (!message.starts_with("acquired@@")) continue;
    ASSERT_TRUE(ids.insert(message).second) << message;
  }
  EXPECT_EQ(contender.acquired(), 0);
  EXPECT_EQ(log.count("whether it was given back is unknown"), 1U) << "said once: " << log.all();
}

// The engine takes a grant that is short from the start for one of a store that grants short
// leases.
TEST_F(ReplicasTest, AGrantThatWasSpentWhileItWaitedForReplicasIsALateOneAndNotAShortOne) {
  servers::RedisServer master;
  master.start();
  servers::Relay relay(master.port());
  const std::string query = "?restart-guard=off&replicas=1";
  const auto store = open("redis://127.0.0.1:" + std::to_string(relay.port()) + query);
  // Killed with its answer to WAIT: giving back fails at once.
  relay.lie([&](std::string_view said) {
    if (said == ":0\r\n") master.kill();
    return std::string(said);
  });
  const LocalTime began = BootClock::now();
  const Observation seen = take(*store, m, "a~1", 0, 60s, 30s, soon(8s));
  const auto took = BootClock::now() - began;
  ASSERT_TRUE(seen.owner.is_owner("a~1"));
  ASSERT_TRUE(seen.owner.ttl_at);
  EXPECT_GE(*seen.owner.ttl_at - seen.now, 2s) << "it waited for half of the time";
  EXPECT_LE(*seen.owner.ttl_at - seen.now, took) << "nobody is to use it";
}

// The connections that wait for replicas are others, and what servers say there means the same.
TEST_F(ReplicasTest, AForgottenScriptIsToldAgainAlsoWhereReplicasAreWaitedFor) {
  servers::RedisServer master, replica;
  master.start();
  replica.start();
  replica.follow(master);
  ASSERT_TRUE(eventually([&] { return replica.info("master_link_status") == "up"; }));
  const auto store = open(master.url("restart-guard=off&replicas=1"));
  const Token token = take(*store, m, "a~1", 0, 120s, 60s).owner.token;
  const auto forgets = [&] { ASSERT_EQ(master({"SCRIPT", "FLUSH"}), "OK"); };
  forgets();
  EXPECT_EQ(renew(*store, m, "a~1", token, 120s, 60s).owner.token, token);
  forgets();
  EXPECT_EQ(take(*store, "other", "a~1").owner.id, "a~1");
  EXPECT_EQ(replica({"GET", "simba:{other}"}), "a~1");
}

// It cannot write its snapshot, and so takes nothing: MISCONF.
TEST_F(ReplicasTest, AServerThatTakesNoWritesSaysSoWithAndWithoutReplicas) {
  servers::RedisServer server;
  server.start();
  const Token token = take(*open(server.url(kUnguarded)), m, "a~1", 0, 300s, 60s).owner.token;
  std::filesystem::create_directory(server.socket().parent_path() / "dump.rdb");
  server({"CONFIG", "SET", "save", "3600 1"});
  server({"BGSAVE"});
  ASSERT_TRUE(eventually([&] { return server.info("rdb_last_bgsave_status") == "err"; }));
  const std::string before = server({"PTTL", "simba:{m}"});
  for (const char* more : {"", "&replicas=1"}) {
    SCOPED_TRACE(more);
    const auto store = open(server.url(kUnguarded + std::string(more)));
    for (const auto& call : std::initializer_list<std::function<void()>>{
             [&] { take(*store, "other", "a~1", 0, 20s, 10s, soon(4s)); },
             [&] { renew(*store, m, "a~1", token, 600s, 60s, soon(4s)); }}) {
      const std::string said = error_of(call);
      EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kUnreachable, "").code().message()));
      EXPECT_THAT(said, HasSubstr("cannot write its snapshot"));
    }
  }
  EXPECT_EQ(server({"EXISTS", "simba:{other}", "simba:{other}:fence"}), "0");
  EXPECT_LE(std::stoll(server({"PTTL", "simba:{m}"})), std::stoll(before)) << "it was renewed";
}

// However many takes wait for replicas that say nothing, renewals go out, and count once they
// speak.
TEST_F(ReplicasTest, TakesThatWaitForReplicasLeaveTheRenewalsTheirWay) {
  servers::RedisServer master, replica;
  master.start();
  replica.start();
  replica.follow(master);
  ASSERT_TRUE(eventually([&] { return replica.info("master_link_status") == "up"; }));
  const auto store = open(master.url("restart-guard=off&replicas=1"));
  const Client client(store, {});
  ContendOptions options = lease(120s, 60s);
  options.renew_at = 0.005;
  options.call_deadline = 2s;
  Contender owner(client, m, options);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  replica.pause();
  // More than a pool has connections; each waits for longer than this test.
  std::vector<std::thread> takes;
  for (int i = 0; i < 24; ++i) {
    takes.emplace_back([&, i] {
      const std::string id = "t~" + std::to_string(i);
      EXPECT_EQ(take(*store, id, id, 0, 120s, 60s, soon(300s)).owner.id, id);
    });
  }
  EXPECT_TRUE(eventually([&] { return std::stoi(master.info("blocked_clients")) >= 7; }));
  const auto left = [&] { return std::stoll(master({"PTTL", "simba:{m}"})); };
  const long long before = left();
  EXPECT_TRUE(eventually([&] { return left() > before; })) << "no renewal got through";
  replica.resume();
  for (std::thread& each : takes) each.join();
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.released(), 0);
}

}  // namespace
}  // namespace simba::redis
