#include <csignal>
#include <fstream>
#include <thread>

#include "simba/locker.h"
#include "stores/redis/dialer.h"
#include "stores/redis/redis_fixture.h"
#include "testing/servers/relay.h"

// Servers that are killed, forget, follow others, evict, or speak TLS.
namespace simba::redis {
namespace {

class ServerTest : public OwnServersTest {};

TEST_F(ServerTest, AKilledServerThatKeepsItsDataKeepsTermsAndTokens) {
  servers::RedisServer server({.config = {{"appendonly", "yes"}, {"appendfsync", "always"}}});
  server.start();
  const Client client(open(server.url()), {});
  Contender owner(client, m, lease(30s, 10s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  server.kill_restart();
  const auto store = open(server.url());
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(observe(*store, m).owner.token, token); }) == "none";
  }));
  EXPECT_EQ(take(*store, m, "b~1").owner.token, token) << "held still";
  EXPECT_EQ(renew(*store, m, owner.wire_id(), token).owner.token, token);
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.released(), 0);
}

// It repeats the arguments of a command that it does not know.
TEST_F(ServerTest, APasswordIsNotRepeatedWhateverTheServerSays) {
  const servers::Directory directory;
  const std::string file = directory.path() / "more.conf";
  std::ofstream(file) << "rename-command AUTH \"\"\n";
  servers::RedisServer server({.config = {{"include", file}}});
  server.start();
  for (const std::string who : {"me:canary-pw", ":canary-pw"}) {
    std::string url = server.url();
    const std::string error =
        error_of([&] { observe(*open(url.insert(url.find("//") + 2, who + '@')), m); });
    EXPECT_THAT(error, HasSubstr("AUTH"));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("canary")));
  }
  const std::string sentinel = "redis+sentinel://" + server.address() + "/main?sentinel-user=me&";
  RedisOptions options = redis_options(sentinel + "connect-timeout=5000");
  options.sentinel_password = "canary-pw";
  const std::string error = error_of([&] { observe(*open_redis(options), m); });
  EXPECT_THAT(error, HasSubstr("AUTH"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("canary")));
  EXPECT_EQ(log.count("canary"), 0U);
}

TEST_F(ServerTest, APasswordForAServerThatHasNoneIsDeniedWithTheWayOut) {
  servers::RedisServer server;
  server.start();
  std::string url = server.url();
  const std::string error =
      error_of([&] { observe(*open(url.insert(url.find("//") + 2, ":canary@")), m); });
  EXPECT_THAT(error, ::testing::StartsWith(Error(Errc::kDenied, "").code().message()));
  EXPECT_THAT(error, HasSubstr("leave it out of the URL"));
}

TEST_F(ServerTest, WithoutAServerAnOwnerLosesInTimeAndContendsAgainWhenItIsBack) {
  servers::RedisServer server;
  server.start();
  const Client client(open(server.url(kUnguarded)), {});
  Contender owner(client, m, lease(2s, 1s));
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  server.kill();
  ASSERT_TRUE(eventually([&] { return owner.released() == 1; }));
  EXPECT_FALSE(owner.is_owner());
  const auto store = open(server.url());
  EXPECT_THAT(error_of([&] { observe(*store, m); }), HasSubstr("Connection refused"));
  server.start();
  EXPECT_TRUE(eventually([&] { return owner.is_owner(); }));
}

// Killed in the middle of the answers to a pipeline, one of many for a thousand claims: each is
// answered or ambiguous, and what an answer said is true.
TEST_F(ServerTest, AServerKilledInMidPipelineLeavesNoAnswerThatIsWrong) {
  servers::RedisServer server({.config = {{"appendonly", "yes"}, {"appendfsync", "always"}}});
  server.start();
  servers::Relay relay(server.port());
  const auto store = open("redis://127.0.0.1:" + std::to_string(relay.port()));
  take(*store, "warm", "a~1");
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("m." + std::to_string(1'000 + i));
  std::vector<Claim> claims;
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 300s, 60s});
  std::atomic<int> whole{0}, cut{0};
  relay.lie([&](std::string_view said) {
    constexpr int kWhole = 3;
    if (said.empty() || ++whole <= kWhole) return std::string(said);
    if (++cut > 1) return std::string();
    server.kill();
    return std::string(said.substr(0, said.size() / 2));
  });
  const Answers answers = store->contend(claims, soon());
  ASSERT_EQ(cut, 1) << "nothing was cut";
  server.start();
  const auto direct = open(server.url());
  std::size_t answered = 0, held = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Token token = observe(*direct, names[i]).owner.token;
    held += token > 0 ? 1 : 0;
    if (const auto* seen = std::get_if<Observation>(&answers[i])) {
      EXPECT_EQ(token, seen->owner.token) << names[i];
      ++answered;
    } else {
      EXPECT_TRUE(std::get<Error>(answers[i]).is_transient());
      EXPECT_THAT(std::get<Error>(answers[i]).what(), HasSubstr("unknown"));
    }
  }
  EXPECT_GT(answered, 0U);
  EXPECT_LT(answered, held) << "the answers to a pipeline were cut, not those between two";
  EXPECT_LT(held, claims.size());
  // Asked again under the same ids, all are granted.
  for (const Answer& each : direct->contend(claims, soon())) {
    EXPECT_EQ(observed(each).owner.id, "a~1");
  }
}

TEST_F(ServerTest, AServerThatForgotItsDataGrantsOnlyWhenOldLeasesHaveEnded) {
  servers::RedisServer server;
  server.start();
  const auto store = open(server.url());
  const std::string said = error_of([&] { take(*store, m, "a~1"); });
  EXPECT_THAT(said, HasSubstr("granted in"));
  EXPECT_THAT(said, HasSubstr("restart-guard=off"));
  EXPECT_EQ(server({"EXISTS", "simba:{m}"}), "0");
  // A shorter lease has ended sooner.
  EXPECT_TRUE(eventually(
      [&] { return error_of([&] { take(*store, m, "a~1", 0, 1s, 500ms); }) == "none"; }));
  EXPECT_GE(std::stoll(server.info("uptime_in_seconds")), 1);
  EXPECT_EQ(error_of([&] { take(*open(server.url(kUnguarded)), "other", "a~1"); }), "none");
}

TEST_F(ServerTest, AMutexThatWasTakenSinceTheServerStartedIsGrantedAtOnce) {
  servers::RedisServer server;
  server.start();
  // Its first second, or what of it cannot be told from the time before, is over.
  ASSERT_TRUE(eventually([&] { return std::stoll(server.info("uptime_in_seconds")) >= 2; }));
  const auto hasty = open(server.url(kUnguarded)), store = open(server.url());
  take(*hasty, m, "a~1");
  release(*hasty, m, "a~1");
  EXPECT_EQ(take(*store, m, "b~1", 0, 200s, 100s).owner.id, "b~1");
  EXPECT_THAT(error_of([&] { take(*store, "other", "b~1", 0, 200s, 100s); }),
              HasSubstr("granted in"));
}

TEST_F(ServerTest, ASnapshotOfWhatOthersKeepIsNoProofThatNoLeaseIsForgotten) {
  servers::RedisServer server;
  server.start();
  server({"SET", "of somebody else", "x"});
  ASSERT_EQ(server({"SAVE"}), "OK");
  take(*open(server.url(kUnguarded)), m, "a~1");
  server.kill_restart();
  ASSERT_EQ(server({"EXISTS", "of somebody else"}), "1");
  EXPECT_THAT(error_of([&] { take(*open(server.url()), m, "b~1"); }), HasSubstr("granted in"));
  EXPECT_EQ(server({"EXISTS", "simba:{m}"}), "0");
}

// The mutex was free when the snapshot was made, and taken afterwards.
TEST_F(ServerTest, NorIsASnapshotOfTheMutexItself) {
  servers::RedisServer server;
  server.start();
  {
    const auto store = open(server.url(kUnguarded));
    take(*store, m, "a~1");
    release(*store, m, "a~1");
    ASSERT_EQ(server({"SAVE"}), "OK");
    take(*store, m, "a~2");
  }
  server.kill_restart();
  ASSERT_EQ(server({"EXISTS", "simba:{m}:fence"}), "1");
  const auto store = open(server.url());
  EXPECT_THAT(error_of([&] { take(*store, m, "b~1"); }), HasSubstr("granted in"));
  EXPECT_TRUE(eventually(
      [&] { return error_of([&] { take(*store, m, "b~1", 0, 2s, 500ms); }) == "none"; }));
}

// As after a step of the clock backward: it does not tell when it was counted.
TEST_F(ServerTest, NorIsAFenceAheadOfTheClock) {
  servers::RedisServer server;
  server.start();
  server({"SET", "simba:{m}:fence", "4000000000000000"});
  const auto store = open(server.url());
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1", 0, 200s, 100s); }), HasSubstr("granted in"));
}

TEST_F(ServerTest, APersistentServerIsNotWaitedFor) {
  servers::RedisServer server({.config = {{"appendonly", "yes"}}});
  server.start();
  EXPECT_EQ(take(*open(server.url()), m, "a~1").owner.id, "a~1");
}

TEST_F(ServerTest, AContenderWaitsOutTheGuardByItself) {
  servers::RedisServer server;
  server.start();
  const Client client(open(server.url()), {});
  Contender owner(client, m, lease(2s, 1s));
  EXPECT_FALSE(owner.is_owner());
  EXPECT_TRUE(eventually([&] { return owner.is_owner(); }));
  EXPECT_GE(std::stoll(server.info("uptime_in_seconds")), 2);
}

TEST_F(ServerTest, APolicyThatEvictsLocksIsWarnedAboutOnce) {
  servers::RedisServer server(
      {.config = {{"maxmemory", "50mb"}, {"maxmemory-policy", "allkeys-lru"}}});
  server.start();
  const auto store = open(server.url(kUnguarded));
  take(*store, m, "a~1");
  server({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(eventually([&] { return error_of([&] { observe(*store, m); }) == "none"; }));
  EXPECT_EQ(log.count("maxmemory-policy allkeys-lru"), 1u) << log.all();
}

TEST_F(ServerTest, AFullServerSaysSoAndTakesNothing) {
  servers::RedisServer server({.config = {{"maxmemory", "1"}}});
  server.start();
  EXPECT_THAT(error_of([&] { take(*open(server.url(kUnguarded)), m, "a~1"); }),
              HasSubstr("memory is full"));
}

TEST_F(ServerTest, AFullServerStillRenewsAndReleases) {
  servers::RedisServer server;
  server.start();
  const auto store = open(server.url(kUnguarded));
  const Token token = take(*store, m, "a~1", 0, 100s, 20s).owner.token;
  ASSERT_EQ(server({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  ASSERT_THAT(error_of([&] { take(*store, "other", "a~1"); }), HasSubstr("memory is full"));
  const Observation before = observe(*store, m);
  const Observation after = renew(*store, m, "a~1", token, 100s, 20s);
  EXPECT_EQ(after.owner.token, token);
  EXPECT_GE(after.owner.transition_at, before.owner.transition_at);
  release(*store, m, "a~1");
  EXPECT_EQ(server({"EXISTS", "simba:{m}"}), "0");
}

// As min-replicas-to-write has it, which bounds for how long two masters grant.
TEST_F(ServerTest, AServerThatMissesItsReplicasSaysSoAndChangesNothing) {
  servers::RedisServer server;
  server.start();
  const auto store = open(server.url(kUnguarded));
  const Token token = take(*store, m, "a~1").owner.token;
  ASSERT_EQ(server({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [&] { take(*store, "other", "a~1"); }, [&] { renew(*store, m, "a~1", token); },
           [&] { release(*store, m, "a~1"); }}) {
    EXPECT_THAT(error_of(call), HasSubstr("min-replicas-to-write"));
  }
  EXPECT_EQ(server({"EXISTS", "simba:{other}", "simba:{other}:fence"}), "0");
  EXPECT_EQ(observe(*store, m).owner.token, token);
}

TEST_F(ServerTest, AServerWithTooManyClientsSaysSo) {
  servers::RedisServer server({.config = {{"maxclients", "1"}}});
  server.start();
  const Admin only(server.url());
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(error_of([&] { observe(*open(server.url(kUnguarded)), m); }),
                HasSubstr("maxclients"));
  }
}

TEST_F(ServerTest, AReplicaServesObserversAndDeniesContenders) {
  servers::RedisServer master, replica;
  master.start();
  replica.start();
  replica.follow(master);
  const auto store = open(master.url(kUnguarded));
  take(*store, m, "a~1");
  const auto other = open(replica.url(kUnguarded));
  EXPECT_TRUE(eventually([&] { return observe(*other, m).owner.id == "a~1"; }));
  EXPECT_THAT(error_of([&] { take(*other, m, "b~1"); }), HasSubstr("redis+sentinel"));
  // Promoted, it is a master with what it had.
  replica({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1"); }) == "none";
  }));
}

TEST_F(ServerTest, AFailoverOnCommandHandsTermsAndTokensToTheReplica) {
  servers::RedisServer master, replica;
  master.start();
  replica.start();
  replica.follow(master);
  ASSERT_TRUE(eventually([&] {
    return master.info("connected_slaves") == "1" && replica.info("master_link_status") == "up";
  }));
  const auto store = open(master.url(kUnguarded));
  const Token token = take(*store, m, "a~1", 0, 60s, 30s).owner.token;
  ASSERT_TRUE(eventually([&] {
    return master({"FAILOVER", "TO", "127.0.0.1", std::to_string(replica.port())}) == "OK";
  }));
  ASSERT_TRUE(eventually([&] { return replica.info("role") == "master"; }));
  const auto other = open(replica.url(kUnguarded));
  EXPECT_EQ(renew(*other, m, "a~1", token).owner.token, token);
  ASSERT_TRUE(eventually([&] { return master.info("role") == "slave"; }));
  EXPECT_THAT(error_of([&] { take(*store, m, "b~1"); }), HasSubstr("replica"));
}

TEST_F(ServerTest, AUnixSocketIsServed) {
  servers::RedisServer server;
  server.start();
  const auto store = open("redis://" + server.socket().string() + "?restart-guard=off");
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "a~1");
  const auto other = open("redis:?restart-guard=off&socket=" + server.socket().string());
  const Hints hints(*other, m);
  ASSERT_TRUE(hints.awaits_live());
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > 1; }));
  EXPECT_THAT(error_of([&] { take(*open("redis:///nowhere/r.sock"), m, "a~1"); }),
              HasSubstr("No such file"));
}

// The default for SIGPIPE is the end of the process.
TEST_F(ServerTest, WritingToAServerThatIsGoneRaisesNoSignal) {
  using Transport = servers::RedisSettings::Transport;
  struct sigaction before {};
  struct sigaction deadly {};
  deadly.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &deadly, &before);
  for (const Transport transport : {Transport::kPlain, Transport::kTls}) {
    servers::RedisServer server({.transport = transport, .config = {}});
    server.start();
    const Dialer dialer(redis_options(server.url()));
    const kit::StopSignal never;
    const auto connection = dialer.open(nullptr, Dialer::Purpose::kSubscription, never);
    server.kill();
    int refused = 0;
    for (int i = 0; i < 5; ++i) {
      const std::string said =
          error_of([&] { connection->send(Commands().add({"PING"}).bytes(), soon()); });
      refused += said == "none" ? 0 : 1;
    }
    EXPECT_GE(refused, 3);
  }
  sigaction(SIGPIPE, &before, nullptr);
}

class TlsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    try {
      server = std::make_unique<servers::RedisServer>(servers::RedisSettings{
          .transport = servers::RedisSettings::Transport::kTls, .config = {}});
      server->start();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
  std::unique_ptr<servers::RedisServer> server;
};

TEST_F(TlsTest, TheServerProvesWhoItIs) {
  const auto store = open(server->url(kUnguarded));
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "a~1");
  const auto other = open(server->url(kUnguarded));
  const Hints hints(*other, m);
  ASSERT_TRUE(hints.awaits_live());
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > 1; }));
}

TEST_F(TlsTest, ManyThreadsShareOneConnection) {
  const Client client(open(server->url(kUnguarded)), {});
  std::vector<std::thread> threads;
  std::atomic<int> pairs{0};
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      SimbaLocker locker(client, m + std::to_string(i));
      for (int k = 0; k < 50; ++k) {
        locker.lock();
        locker.unlock();
        ++pairs;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pairs, 600);
}

// What a server says when it hangs up is no sign of life.
TEST_F(TlsTest, AConnectionThatWasClosedAtRestCostsNoCall) {
  const auto store = open(server->url(kUnguarded));
  const Token token = take(*store, m, "a~1").owner.token;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ((*server)({"CLIENT", "KILL", "TYPE", "normal"}), "1");
    std::this_thread::sleep_for(kPastRest);
    ASSERT_EQ(error_of([&] { renew(*store, m, "a~1", token); }), "none");
  }
}

// The bytes that are there are no record yet: nothing may wait for the rest without an end.
TEST_F(TlsTest, APeerThatHangsInTheMidstOfARecordCostsACallItsDeadlineAndNoMore) {
  servers::Relay relay(server->port());
  const std::string through = "rediss://127.0.0.1:" + std::to_string(relay.port()) +
                              "?ca-file=" + server->authority().string() + '&' + kUnguarded;
  std::atomic<bool> hangs{false};
  const auto hang = [&] {
    hangs = false;
    relay.lie([&](std::string_view said) {
      if (said.empty() || hangs.exchange(true)) return std::string();
      return std::string(said.substr(0, said.size() / 2));
    });
  };
  const auto expect_an_end = [&](const char* what, const std::shared_ptr<Store>& store) {
    const LocalTime began = BootClock::now();
    EXPECT_NE(error_of([&] { take(*store, m, "b~1", 0, 20s, 10s, soon(300ms)); }), "none") << what;
    EXPECT_LT(BootClock::now() - began, 10s) << what;
    EXPECT_TRUE(hangs) << what << ": there was no half of a record";
    relay.mend();
  };
  // With replicas, on a connection of the call's own.
  for (const char* more : {"", "&replicas=1"}) {
    const auto store = open(through + more);
    error_of([&] { take(*store, m, "a~1", 0, 20s, 10s, soon(2s)); });
    const Hints hints(*store, m);
    ASSERT_TRUE(hints.awaits_live());
    hang();
    expect_an_end(more, store);
    EXPECT_TRUE(eventually([&] { return error_of([&] { observe(*store, m); }) == "none"; }));
  }
  const auto store = open(through + "&connect-timeout=500");
  hang();
  expect_an_end("the hand-shake", store);
  EXPECT_TRUE(eventually([&] { return error_of([&] { observe(*store, m); }) == "none"; }));
  // Whoever listens does not keep its store from ending.
  const auto listening = std::make_unique<Hints>(*store, m);
  ASSERT_TRUE(listening->awaits_live());
  hang();
  (*server)({"PUBLISH", "simba:{m}", "released@@x"});
  ASSERT_TRUE(eventually([&] { return hangs.load(); }));
}

TEST_F(TlsTest, AServerThatWantsToKnowItsClientsIsShownACertificate) {
  servers::RedisServer strict({.transport = servers::RedisSettings::Transport::kTls,
                               .config = {{"tls-auth-clients", "yes"}}});
  strict.start();
  const servers::Certificates& known = strict.certificates();
  known.make("client", "ca", "DNS:client.example");
  known.make_authority("stranger");
  known.make("unknown", "stranger", "DNS:client.example");
  const auto url_as = [&](const std::string& who) {
    return strict.url(std::string(kUnguarded) + "&connect-timeout=2000&cert-file=" +
                      known.certificate(who).string() + "&key-file=" + known.key(who).string());
  };
  EXPECT_EQ(take(*open(url_as("client")), m, "a~1").owner.id, "a~1");
  for (const std::string& url : {url_as("unknown"), strict.url(kUnguarded)}) {
    const std::string said = error_of([&] { take(*open(url), m, "b~1"); });
    EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kMisconfigured, "").code().message()));
    EXPECT_THAT(said, HasSubstr("cert-file=FILE"));
  }
}

TEST_F(TlsTest, AServerThatCannotProveItIsRefused) {
  const std::string plain = "127.0.0.1:" + std::to_string(server->port());
  EXPECT_THAT(error_of([&] { observe(*open("rediss://" + plain), m); }), HasSubstr("ca-file"));
  const std::string wrong = server->url("server-name=elsewhere.example");
  EXPECT_THAT(error_of([&] { observe(*open(wrong), m); }), HasSubstr("mismatch"));
  EXPECT_THAT(error_of([&] { open(server->url("cert-file=/nowhere")); }), HasSubstr("go together"));
  EXPECT_THAT(error_of([&] { open("rediss://h?ca-file=/nowhere"); }), HasSubstr("/nowhere"));
  servers::RedisServer clear;
  clear.start();
  EXPECT_THAT(
      error_of([&] { observe(*open("rediss://" + clear.address() + "?connect-timeout=300"), m); }),
      HasSubstr("speak TLS"));
}

}  // namespace
}  // namespace simba::redis
