// What a Redis server says of others, and unasked: read with suspicion.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simba/error.h"
#include "stores/redis/directions.h"
#include "stores/redis/inbox.h"
#include "stores/redis/made_replies.h"
#include "stores/redis/names.h"
#include "stores/redis/requests.h"
#include "stores/redis/server_info.h"
#include "stores/redis/servers.h"

namespace simba::redis {
namespace {

using Names = std::vector<std::string>;

const Address kAsked{"asked.example", 7'000};

Reply range(std::int64_t from, std::int64_t to, Reply host, Reply port) {
  return array({number(from), number(to), array({std::move(host), std::move(port)})});
}

bool is_corrupt(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const Error& error) {
    return error.errc() == Errc::kCorrupt;
  }
}

TEST(RedisDirections, AMapSaysWhoServesWhichSlots) {
  const auto ranges = read_slots(
      array({range(0, 5, text("a.example"), number(7'001)), range(6, 6, nil(), number(7'002)),
             range(7, 16'383, text(""), number(7'003))}),
      kAsked, "here");
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].master, (Address{"a.example", 7'001}));
  EXPECT_EQ(ranges[0].to, 5);
  EXPECT_EQ(ranges[1].master, (Address{"asked.example", 7'002}));
  EXPECT_EQ(ranges[2].master, (Address{"asked.example", 7'003}));
  EXPECT_TRUE(read_slots(array({}), kAsked, "here").empty());
}

TEST(RedisDirections, AMapThatMakesNoSenseIsCorrupt) {
  const Reply host = text("a.example"), port = number(7'001);
  const std::vector<Reply> hostile{
      number(1),
      text("OK"),
      nil(),
      array({number(1)}),
      array({range(-1, 5, host, port)}),
      array({range(5, 4, host, port)}),
      array({range(0, 16'384, host, port)}),
      array({range(0, 5, host, number(0))}),
      array({range(0, 5, host, number(65'536))}),
      array({range(0, 5, host, text("7001"))}),
      array({range(0, 5, number(1), port)}),
      array({range(0, 5, text("/run/a-socket-of-mine"), port)}),
      array({range(0, 5, text("a b"), port)}),
      array({range(0, 5, text("a\nb"), port)}),
      array({range(0, 5, text(std::string(300, 'a')), port)}),
      array({array({text("0"), text("5"), array({host, port})})}),
      // Else a long map of them would be worked through for minutes.
      array({range(0, 16'383, host, port), range(0, 16'383, host, port)}),
  };
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    EXPECT_TRUE(is_corrupt([&] { read_slots(hostile[i], kAsked, "here"); })) << i;
  }
}

TEST(RedisDirections, AMapHasAThousandMastersAtMost) {
  std::vector<Reply> ranges;
  for (int i = 0; i < 1'000; ++i) {
    ranges.push_back(range(i, i, text("a.example"), number(1 + i)));
  }
  EXPECT_EQ(read_slots(array(ranges), kAsked, "here").size(), 1'000U);
  ranges.push_back(range(1'000, 1'000, text("a.example"), number(1)));
  EXPECT_EQ(read_slots(array(ranges), kAsked, "here").size(), 1'001U) << "one has two ranges";
  ranges.push_back(range(1'001, 1'001, text("b.example"), number(1)));
  EXPECT_TRUE(is_corrupt([&] { read_slots(array(ranges), kAsked, "here"); }));
}

TEST(RedisServers, RedirectsWithoutEndNameAThousandNodesAtMost) {
  RedisOptions options;
  options.hosts = {"named.example"};
  options.topology = RedisOptions::Topology::kCluster;
  Servers servers(std::make_shared<Dialer>(options));
  const std::weak_ptr<Node> named = servers.at({"named.example", 6'379});
  for (std::uint16_t port = 1; port <= 5'000; ++port) servers.at({"a.example", port});
  EXPECT_LE(servers.count(), 1'000U);
  EXPECT_FALSE(named.expired());
}

TEST(RedisDirections, ASentinelNamesAHostAndAPortOrNobody) {
  EXPECT_EQ(read_master(array({text("a.example"), text("6379")}), "it"),
            (Address{"a.example", 6'379}));
  EXPECT_EQ(read_master(nil(), "it"), std::nullopt);
  const std::vector<Reply> hostile{number(1),
                                   text("OK"),
                                   array({}),
                                   array({text("a.example")}),
                                   array({text("a.example"), text("0")}),
                                   array({text("a.example"), text("65536")}),
                                   array({text("a.example"), text("6379x")}),
                                   array({text("a.example"), number(6'379)}),
                                   array({text(""), text("6379")}),
                                   array({text("/run/a-socket-of-mine"), text("6379")}),
                                   array({text("a\r\nb"), text("6379")})};
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    EXPECT_TRUE(is_corrupt([&] { read_master(hostile[i], "it"); })) << i;
  }
}

TEST(RedisDirections, ARedirectNamesAHostAndAPort) {
  EXPECT_EQ(read_redirect(error("MOVED 3999 127.0.0.1:6381"), kAsked),
            (Address{"127.0.0.1", 6'381}));
  EXPECT_EQ(read_redirect(error("ASK 3999 ::1:6381"), kAsked), (Address{"::1", 6'381}));
  EXPECT_EQ(read_redirect(error("MOVED 3999 :6381"), kAsked), (Address{"asked.example", 6'381}));
  EXPECT_EQ(read_redirect(error("MOVED 3999 :6381"), std::nullopt), std::nullopt);
  for (const char* other :
       {"MOVED", "MOVED 3999", "MOVED 3999 ", "MOVED 3999 a", "MOVED 3999 a:", "MOVED 3999 a:0",
        "MOVED 3999 a:65536", "MOVED 3999 a:1x", "MOVED 3999 /run/a-socket-of-mine",
        "MOVED 3999 /run/a-socket-of-mine:1", "MOVED 3999 a\x01:1"}) {
    EXPECT_EQ(read_redirect(error(other), kAsked), std::nullopt) << other;
  }
}

TEST(RedisServerInfo, IsReadByTheLine) {
  const Reply time = array({text("12"), text("1000")});
  const ServerInfo info = read_info(
      "# Server\r\nold_redis_version:1.0.0\r\nredis_version:7.0.15\r\nuptime_in_seconds:2\r\n"
      "maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n",
      time);
  EXPECT_EQ(info.version_text, "7.0.15");
  EXPECT_EQ(info.version, 70'015);
  EXPECT_EQ(info.started, 11'000);
  EXPECT_TRUE(info.evicts && info.persists);
  const ServerInfo none = read_info("NOPERM this user has no permissions", nil());
  EXPECT_EQ(none.version, 0);
  EXPECT_FALSE(none.evicts || none.persists);
}

// The policy stands in a line of the log.
TEST(RedisServerInfo, WhatIsNoWordIsNotRepeated) {
  const auto policy = [](const std::string& said) {
    const std::string info = "maxmemory:100\r\nmaxmemory_policy:" + said + "\r\n";
    const ServerInfo seen = read_info(info, nil());
    EXPECT_TRUE(seen.evicts) << "who knows what it does";
    return std::string(seen.eviction_policy);
  };
  EXPECT_EQ(policy("volatile-lfu"), "volatile-lfu");
  EXPECT_EQ(policy("\x1b]0;x\a"), "");
  EXPECT_EQ(policy("caf\xe9"), "");
  EXPECT_EQ(policy(std::string(1'000, 'x')), "");
}

TEST(RedisServerInfo, NumbersBeyondAllSenseAreNotCountedWith) {
  const Reply time = array({text("9223372036854775807"), text("-9223372036854775808")});
  const ServerInfo info = read_info(
      "redis_version:9223372036854775807.-5.9\nuptime_in_seconds:-9223372036854775808\n", time);
  EXPECT_EQ(info.version, 9);
  EXPECT_EQ(info.started, 1'000);
}

TEST(RedisAnswers, AScanNamesMutexesAndWhereToGoOn) {
  Names names;
  EXPECT_EQ(read_scan(array({text("17"), array({text("simba:{a}"), text("other"), number(1)})}),
                      "here", names),
            "17");
  EXPECT_EQ(names, Names{"a"});
  for (const Reply& each : {number(1), array({}), array({text("0")}),
                            array({text("0"), text("simba:{a}")}), array({number(0), array({})}),
                            array({text("x"), array({})}), array({text("-1"), array({})})}) {
    EXPECT_TRUE(is_corrupt([&] { read_scan(each, "here", names); }));
  }
}

class RedisInboxTest : public ::testing::Test {
 protected:
  RedisInboxTest() {
    subscriptions->watch("job", nullptr);
    subscriptions->changes(nullptr, now);
  }
  void take(const std::string& kind, const std::string& channel, const std::string& words) {
    inbox.take(array({text(kind), text(channel), text(words)}), "here", now, hint);
  }
  Names due() {
    hinted.clear();
    inbox.pass_on_due(now + milliseconds{20}, hint);
    return hinted;
  }

  const LocalTime now{milliseconds{1'000}};
  const std::shared_ptr<Subscriptions> subscriptions = std::make_shared<Subscriptions>();
  Inbox inbox{subscriptions, "me"};
  Names hinted;
  const Inbox::Hint hint = [this](std::string_view mutex) { hinted.emplace_back(mutex); };
};

TEST(RedisSubscriptions, WhatNobodyWaitsForAndNoServerWasAskedForIsForgotten) {
  Subscriptions subscriptions;
  const LocalTime now{milliseconds{1'000}};
  subscriptions.watch("early", nullptr);
  EXPECT_TRUE(subscriptions.is_at_a_loss());
  subscriptions.unwatch("early", now);
  EXPECT_FALSE(subscriptions.knows("early"));
  EXPECT_FALSE(subscriptions.is_at_a_loss());
  subscriptions.watch("late", nullptr);
  EXPECT_EQ(subscriptions.changes(nullptr, now).subscribe, Names{"late"});
  subscriptions.unwatch("late", now);
  EXPECT_TRUE(subscriptions.knows("late")) << "the next who waits is often near";
  EXPECT_EQ(subscriptions.changes(nullptr, now + Subscriptions::kLinger).unsubscribe,
            Names{"late"});
  EXPECT_FALSE(subscriptions.knows("late"));
}

TEST(RedisSubscriptions, WhatNobodyWaitsForAnyMoreIsForgottenWhenItsSlotMoves) {
  const auto dialer = std::make_shared<Dialer>(RedisOptions{});
  const auto old = std::make_shared<Node>(dialer, kAsked);
  auto next = std::make_shared<Node>(dialer, kAsked);
  Subscriptions subscriptions;
  const LocalTime now{milliseconds{1'000}};
  for (const char* mutex : {"kept", "left"}) subscriptions.watch(mutex, old);
  subscriptions.changes(old.get(), now);
  subscriptions.unwatch("left", now);
  const auto busy = subscriptions.place_all([&](std::string_view) { return next; });
  EXPECT_EQ(busy, (std::vector{old, next, old}));
  EXPECT_EQ(subscriptions.changes(old.get(), now).unsubscribe, (Names{"kept", "left"}));
  EXPECT_EQ(subscriptions.changes(next.get(), now).subscribe, Names{"kept"});
  EXPECT_FALSE(subscriptions.knows("left"));
}

TEST_F(RedisInboxTest, WhoIsWokenIsHintedAtOnceAndNotAgainByTheBroadcast) {
  take("message", "simba:{job}:me", "released@@a~1");
  EXPECT_EQ(hinted, Names{"job"});
  take("message", "simba:{job}", "released@@a~1");
  EXPECT_EQ(due(), Names{});
  take("message", "simba:{job}", "released@@b~1");
  EXPECT_EQ(due(), Names{"job"});
}

TEST_F(RedisInboxTest, OfMutexesNobodyAskedForNothingIsKept) {
  for (int i = 0; i < 100; ++i) {
    const std::string key = lease_key("other-" + std::to_string(i));
    take("message", key, "released@@a~1");
    take("message", key + ":me", "released@@a~1");
    take("subscribe", key + ":me", "");
  }
  EXPECT_EQ(hinted, Names{});
  EXPECT_EQ(due(), Names{});
}

TEST_F(RedisInboxTest, WhatIsNoMessageIsPassedByAndAnErrorIsOne) {
  for (const Reply& each : {number(1), nil(), array({}), array({text("message")}),
                            array({text("message"), number(1), nil()}),
                            array({nil(), text("simba:{job}"), text("released@@a")})}) {
    inbox.take(each, "here", now, hint);
  }
  take("message", "simba:{job}", "nonsense");
  take("message", "", "released@@a");
  take("subscribe", ":me", "");
  EXPECT_EQ(hinted, Names{});
  EXPECT_EQ(due(), Names{});
  EXPECT_THROW(inbox.take(error("NOPERM no"), "here", now, hint), Error);
}

}  // namespace
}  // namespace simba::redis
