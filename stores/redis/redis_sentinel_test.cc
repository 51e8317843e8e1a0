#include <fstream>
#include <iterator>
#include <sstream>

#include "stores/redis/failure.h"
#include "stores/redis/redis_fixture.h"
#include "testing/servers/port.h"
#include "testing/servers/relay.h"

// Sentinels that make another server the master.
namespace simba::redis {
namespace {

class SentinelTest : public OwnServersTest {
 protected:
  void expect_succession_by_sentinels(void (servers::Server::*strike)());
};

// A term and a waiter go to the new master by themselves.
void SentinelTest::expect_succession_by_sentinels(void (servers::Server::*strike)()) {
  servers::RedisSentinels sentinels;
  sentinels.start();
  const Client client(open(sentinels.url(kUnguarded)), {});
  // Sentinels that stood still do nothing for half a minute.
  ContendOptions options = lease(120s, 60s);
  options.renew_at = 0.02;
  options.call_deadline = 2s;
  Contender owner(client, m, options);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Client other(open(sentinels.url(kUnguarded)), {});
  options.safety_poll = 300s;  // only a message is in time
  Contender waiter(other, m, options);
  ASSERT_TRUE(eventually([&] { return waiter.is_running(); }));
  const Token token = owner.token();
  // The replicas have it: this failover loses nothing.
  ASSERT_TRUE(eventually([&] {
    return sentinels[1]({"GET", "simba:{m}:token"}) == std::to_string(token) &&
           sentinels[2]({"GET", "simba:{m}:token"}) == std::to_string(token);
  }));
  (sentinels[0].*strike)();
  const auto store = open(sentinels.url(kUnguarded));
  ASSERT_TRUE(eventually([&] { return sentinels.master() != 0; }, 90s));
  Observation held;
  ASSERT_TRUE(eventually(
      [&] {
        return error_of([&] {
                 held = take(*store, m, "c~1");
                 EXPECT_EQ(held.owner.token, token);
               }) == "none";
      },
      90s));
  EXPECT_TRUE(eventually([&] {
    return observe(*store, m).owner.transition_at > held.owner.transition_at;
  })) << "it renews on the new master";
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.released(), 0);
  EXPECT_EQ(waiter.acquired(), 0);
  servers::RedisServer& master = sentinels[sentinels.master()];
  ASSERT_TRUE(eventually([&] {
    return master({"PUBSUB", "NUMSUB", "simba:{m}"}).ends_with("\n2");
  })) << "subscriptions follow the master";
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); })) << "it was not woken";
  EXPECT_GT(waiter.token(), token);
}

TEST_F(SentinelTest, SentinelsLeadToTheMasterBeforeAndAfterAFailover) {
  expect_succession_by_sentinels(&servers::Server::kill);
}

// Its connections stay open: nobody is told.
TEST_F(SentinelTest, AStoppedMasterIsLeftForTheOneThatSentinelsMade) {
  expect_succession_by_sentinels(&servers::Server::pause);
}

TEST_F(SentinelTest, SentinelsThatKnowNothingAreToldApartFromThoseThatAreDown) {
  servers::RedisSentinels sentinels;
  sentinels.start();
  const std::string wrong = "redis+sentinel://" + sentinels.addresses() + "/another";
  EXPECT_THAT(error_of([&] { observe(*open(wrong), "m"); }),
              HasSubstr("knows no master 'another'"));
  EXPECT_THAT(error_of([&] { observe(*open("redis+sentinel://127.0.0.1:1/x"), "m"); }),
              HasSubstr("Connection refused"));
  EXPECT_THAT(error_of([&] { open("redis+sentinel://127.0.0.1:1"); }),
              HasSubstr("name of the master"));
}

// One that is cut off from the others, and has not heard of the failover.
TEST_F(SentinelTest, ASentinelThatNamesAServerOfYesterdayIsNotTheLastOneAsked) {
  servers::RedisSentinels sentinels;
  sentinels.start();
  const std::string all = sentinels.addresses();
  const std::string first = all.substr(0, all.find(','));
  servers::Relay relay(static_cast<std::uint16_t>(std::stoul(first.substr(first.find(':') + 1))));
  const auto names = [&](std::uint16_t port) {
    const std::string digits = std::to_string(port);
    relay.lie(
        [answer = "*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(digits.size()) + "\r\n" + digits +
                  "\r\n"](std::string_view said) { return said.empty() ? std::string() : answer; });
  };
  const auto ask = [&] {
    const std::string url = "redis+sentinel://127.0.0.1:" + std::to_string(relay.port()) +
                            all.substr(all.find(',')) + "/simba-test?restart-guard=off";
    return error_of([&] { take(*open(url + "&connect-timeout=8000"), m, "a~1"); });
  };
  const servers::Port nobody;
  names(nobody.number());
  EXPECT_EQ(ask(), "none") << "it is dead";
  names(sentinels[1].port());
  EXPECT_EQ(ask(), "none") << "it is a replica";
  sentinels[2].pause();
  names(sentinels[2].port());
  EXPECT_EQ(ask(), "none") << "it is silent";
  sentinels[2].resume();
}

// A user for the sentinels and one for the servers, each with the rights that the page names.
class LoginTest : public SentinelTest {
 protected:
  void make_users(servers::RedisSentinels& sentinels) {
    std::istringstream acl(contender_acl(RedisOptions::Topology::kSentinel));
    std::vector<std::string> rules{std::istream_iterator<std::string>(acl), {}};
    std::replace(rules.begin(), rules.end(), std::string(">PASSWORD"),
                 std::string(">contender-canary"));
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(sentinels[i](rules), "OK");
      ASSERT_EQ(sentinels.ask(i, {"ACL", "SETUSER", "asker", "on", ">asker-canary",
                                  "+sentinel|get-master-addr-by-name"}),
                "OK");
    }
  }
  std::string file(const std::string& secret) {
    std::string path = directory_.path() / secret;
    std::ofstream(path) << secret << '\n';
    return path;
  }
  std::string as(const servers::RedisSentinels& sentinels, const std::string& password,
                 const std::string& sentinel_password, const std::string& more = {}) {
    std::string url = sentinels.url(
        "restart-guard=off&user=contender&password-file=" + file(password) +
        "&sentinel-user=asker&sentinel-password-file=" + file(sentinel_password) + more);
    return url.erase(url.find("//") + 2, url.find('@') - url.find("//") - 1);
  }
  // A term is taken, heard of, and goes on at the next master.
  void expect_service(servers::RedisSentinels& sentinels, const std::string& url) {
    const auto store = open(url), other = open(url);
    const Token token = take(*store, m, "a~1", 0, 120s, 60s).owner.token;
    const Hints hints(*other, m);
    ASSERT_TRUE(hints.awaits_live());
    ASSERT_TRUE(eventually([&] {
      return sentinels[1]({"GET", "simba:{m}:token"}) == std::to_string(token) &&
             sentinels[2]({"GET", "simba:{m}:token"}) == std::to_string(token);
    }));
    sentinels.fail_over();
    ASSERT_TRUE(eventually([&] {
      return error_of([&] {
               EXPECT_EQ(renew(*store, m, "a~1", token, 120s, 60s, soon(5s)).owner.token, token);
             }) == "none";
    }));
    ASSERT_TRUE(eventually([&] {
      return sentinels[sentinels.master()]({"PUBSUB", "NUMSUB", "simba:{m}"}).ends_with("\n1");
    })) << "the subscription follows";
    const int before = hints.count();
    release(*store, m, "a~1");
    EXPECT_TRUE(eventually([&] { return hints.count() > before; }));
    EXPECT_EQ(log.count("canary"), 0U) << log.all();
  }

 private:
  const servers::Directory directory_;
};

// With replicas that acknowledge.
TEST_F(LoginTest, SentinelsAndServersHaveEachALoginOfTheirOwn) {
  servers::RedisSentinels sentinels({.password = "root-canary", .config = {}});
  sentinels.start();
  make_users(sentinels);
  expect_service(sentinels, as(sentinels, "contender-canary", "asker-canary", "&replicas=2"));
  // There are two.
  const auto greedy = open(as(sentinels, "contender-canary", "asker-canary", "&replicas=3"));
  EXPECT_THAT(error_of([&] { take(*greedy, m, "a~1", 0, 20s, 10s, soon(8s)); }),
              HasSubstr("of 3 replicas"));
  EXPECT_TRUE(observe(*greedy, m).is_free()) << "given back";
  const auto said = [&](const std::string& url) {
    return error_of([&] { observe(*open(url), m); });
  };
  const std::string denied = Error(Errc::kDenied, "").code().message();
  const std::string wrong = said(as(sentinels, "contender-canary", "wrong-canary"));
  EXPECT_THAT(wrong, ::testing::StartsWith(denied));
  EXPECT_THAT(wrong, HasSubstr("the sentinel at"));
  EXPECT_THAT(wrong, HasSubstr("password is wrong"));
  EXPECT_THAT(wrong, ::testing::Not(HasSubstr("canary")));
  const std::string nothing = said("redis+sentinel://" + sentinels.addresses() + "/simba-test");
  EXPECT_THAT(nothing, ::testing::StartsWith(denied));
  EXPECT_THAT(nothing, HasSubstr("sentinel-password-file"));
  const std::string server = said(as(sentinels, "wrong-canary", "asker-canary"));
  EXPECT_THAT(server, ::testing::StartsWith(denied));
  EXPECT_THAT(server, ::testing::Not(HasSubstr("the sentinel at")));
}

TEST_F(LoginTest, SentinelsAndServersSpeakTls) {
  try {
    servers::RedisSentinels sentinels({.transport = servers::RedisSettings::Transport::kTls,
                                       .password = "root-canary",
                                       .config = {}});
    sentinels.start();
    make_users(sentinels);
    expect_service(sentinels, as(sentinels, "contender-canary", "asker-canary"));
    const std::string bare = "rediss+sentinel://" + sentinels.addresses() + "/simba-test";
    EXPECT_THAT(error_of([&] { observe(*open(bare), m); }), HasSubstr("ca-file"));
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
}

}  // namespace
}  // namespace simba::redis
