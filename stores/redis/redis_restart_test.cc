#include <fstream>

#include "stores/redis/redis_fixture.h"
#include "testing/servers/directory.h"
#include "testing/servers/relay.h"

// A server that is killed and started again without its data, under contenders that stay, or that
// only looks so.
namespace simba::redis {
namespace {

TEST(RedisRestart, ARivalWaitsUntilALeaseThatTheServerForgotHasEnded) {
  constexpr milliseconds kTtl = 5s, kTransition = 2s;
  const std::string m = "m";
  std::unique_ptr<servers::RedisServer> server;
  try {
    server = std::make_unique<servers::RedisServer>();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  server->start();
  servers::Relay relay(server->port());
  // The first term is granted at once: nothing was forgotten yet.
  const Client client(
      open_alone("redis://127.0.0.1:" + std::to_string(relay.port()) + "?restart-guard=off"), {});
  ContendOptions careful = lease(kTtl, kTransition);
  careful.renew_at = 0.1;  // it has nearly all of its lease left when the server is killed
  Contender owner(client, m, careful);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  const Client other(open_alone(server->url()), {});
  ContendOptions hasty = lease(kTtl, kTransition);
  hasty.safety_poll = 200ms;
  Contender rival(other, m, hasty);
  ASSERT_TRUE(eventually([&] {
    return (*server)({"ZCARD", "simba:{m}:contender"}) == "1";
  })) << "it does not wait in line";
  // The owner hears nothing of what follows, and works on until its own deadline.
  relay.stall();
  server->kill();
  const LocalTime killed = BootClock::now();
  server->start();
  const bool was_owner = owner.is_owner();
  bool were_both = false;
  ASSERT_TRUE(eventually([&] {
    const bool has = rival.is_owner();
    were_both |= has && owner.is_owner();
    return has;
  }));
  EXPECT_GE(BootClock::now() - killed, kTtl + kTransition) << "the old lease may still have run";
  EXPECT_TRUE(was_owner) << "it did not outlive the server: nothing was shown";
  EXPECT_FALSE(were_both);
  EXPECT_FALSE(owner.is_owner());
  EXPECT_GT(rival.token(), token);
}

// A clock that can be set: that of a server which was started with this environment.
class Clock {
 public:
  Clock() { set_back(std::chrono::seconds{0}); }
  void set_back(std::chrono::nanoseconds by) {
    const std::int64_t shift = -by.count();
    std::fstream out(file_, std::ios::out | std::ios::in | std::ios::binary);
    if (!out) out.open(file_, std::ios::out | std::ios::binary);
    out.write(reinterpret_cast<const char*>(&shift), sizeof shift);
  }
  std::vector<std::string> environment() const {
    return {"LD_PRELOAD=" SIMBA_SHIFT_CLOCK, "SIMBA_TEST_CLOCK_FILE=" + file_};
  }

 private:
  const servers::Directory directory_;
  const std::string file_ = directory_.path() / "clock";
};

// A lease that a replica takes over ends at a time of the old master's clock.
TEST(RedisRestart, ASuccessorWhoseClockIsOffEndsLeasesEarlyOrLateAndTokensGrowByTheFence) {
  for (const bool is_ahead : {true, false}) {
    SCOPED_TRACE(is_ahead ? "ahead" : "behind");
    std::unique_ptr<servers::RedisServer> master, replica;
    try {
      master = std::make_unique<servers::RedisServer>();
      replica = std::make_unique<servers::RedisServer>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    Clock clock;
    clock.set_back(is_ahead ? -1h : 1h);
    replica->recipe().command.environment = clock.environment();
    master->start();
    replica->start();
    replica->follow(*master);
    ASSERT_TRUE(eventually([&] { return replica->info("master_link_status") == "up"; }));
    const auto before = open_alone(master->url("restart-guard=off"));
    const Token token = take(*before, "m", "a~1", 0, 300s, 60s).owner.token;
    ASSERT_TRUE(eventually(
        [&] { return replica->info("slave_repl_offset") == master->info("master_repl_offset"); }));
    (*replica)({"REPLICAOF", "NO", "ONE"});
    const auto store = open_alone(replica->url("restart-guard=off"));
    const Observation seen = observe(*store, "m");
    EXPECT_EQ(seen.is_free(), is_ahead);
    if (!is_ahead) {
      EXPECT_GT(seen.owner.transition_at - seen.now, 1h);
      store->evict("m", "a~1", token, Eviction::kFreeNow, soon());
    }
    EXPECT_GT(take(*store, "m", "b~1").owner.token, token);
    if (is_ahead) continue;
    // Without the fence, which it may have missed, what the client has seen is left, or the clock.
    release(*store, "m", "b~1");
    (*replica)({"DEL", "simba:{m}:fence"});
    EXPECT_GT(take(*store, "m", "c~1", token).owner.token, token);
    release(*store, "m", "c~1");
    (*replica)({"DEL", "simba:{m}:fence"});
    EXPECT_LT(take(*store, "m", "d~1").owner.token, token) << "as the page warns";
  }
}

// By its clock it starts in an hour. Who has been connected for a lease knows better.
TEST(RedisRestart, AServerWhoseClockWasSetBackIsNotWaitedForLongerThanALease) {
  std::unique_ptr<servers::RedisServer> server;
  try {
    server = std::make_unique<servers::RedisServer>();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  Clock clock;
  server->recipe().command.environment = clock.environment();
  server->start();
  const auto seconds = [&] { return std::stoll((*server)({"TIME"})); };
  const auto store = open_alone(server->url());
  observe(*store, "m");
  const long long before = seconds();
  clock.set_back(1h);
  ASSERT_LT(seconds(), before - 3'000) << "the clock was not set";
  EXPECT_THAT(error_of([&] { take(*store, "long", "a~1", 0, 200s, 100s); }),
              HasSubstr("granted in 300 s"));
  EXPECT_TRUE(eventually(
      [&] { return error_of([&] { take(*store, "m", "a~1", 0, 1s, 500ms); }) == "none"; }));
}

}  // namespace
}  // namespace simba::redis
