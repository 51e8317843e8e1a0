#include "stores/redis/redis_fixture.h"
#include "testing/servers/relay.h"

// A server that is killed and started again without its data, under contenders that stay.
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

}  // namespace
}  // namespace simba::redis
