#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "simba/redis.h"
#include "stores/redis/administration.h"
#include "stores/redis/commands.h"
#include "stores/redis/connection.h"
#include "stores/redis/dialer.h"
#include "stores/redis/failure.h"
#include "stores/redis/link.h"
#include "stores/redis/made_replies.h"
#include "stores/redis/names.h"
#include "stores/redis/reply.h"
#include "stores/redis/requests.h"
#include "stores/redis/server_info.h"
#include "testing/servers/unique_fd.h"

namespace simba::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Topology = RedisOptions::Topology;

std::string refusal(const std::string& url) {
  try {
    const Dialer dialer(redis_options(url));
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

// A server that answers faster than anybody reads.
class Fountain : public Transport {
 public:
  Fountain() : Transport(eventfd(0, EFD_CLOEXEC)) {}

  Moved read(char* to, std::size_t most) override {
    given_ += most;
    if (given_ > kMuch) return {0, POLLIN};  // else who reads without an end would never fail
    for (std::size_t i = 0; i < most; ++i) to[i] = ":1\r\n"[i % 4];
    return {most, 0};
  }
  Moved wait_and_read(char* to, std::size_t most) override { return read(to, most); }
  Moved write(const char*, std::size_t count) override { return {count, 0}; }

 private:
  static constexpr std::size_t kMuch = std::size_t{32} << 20;
  std::size_t given_ = 0;
};

TEST(RedisConnection, WhoIsToldMoreAndMoreLooksUpInBetween) {
  Connection connection(std::make_unique<Fountain>(), "redis at nowhere:1");
  Replies replies;
  connection.receive(replies);
  EXPECT_LE(replies.size(), std::size_t{1} << 18) << "a megabyte of four bytes each";
  const LocalTime soon = BootClock::now() + std::chrono::seconds(60);
  try {
    connection.run(Commands().add({"PING"}), soon);
    FAIL() << "more answers than questions";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kCorrupt) << error.what();
  }
}

// A server that turns everybody away, and says why, or hangs up before all is sent.
class Doorman : public Transport {
 public:
  Doorman(std::string words, bool is_hasty)
      : Transport(eventfd(0, EFD_CLOEXEC)), words_(std::move(words)), is_hasty_(is_hasty) {}

  Moved read(char* to, std::size_t) override {
    if (words_.empty()) throw Error(Errc::kUnreachable, "the server closed the connection");
    const std::size_t count = words_.copy(to, words_.size());
    words_.clear();
    return {count, 0};
  }
  Moved wait_and_read(char* to, std::size_t most) override { return read(to, most); }
  Moved write(const char*, std::size_t count) override {
    if (is_hasty_) throw Error(Errc::kUnreachable, "Broken pipe");
    return {count, 0};
  }

 private:
  std::string words_;
  const bool is_hasty_;
};

TEST(RedisConnection, WhoIsTurnedAwayIsToldWhy) {
  const auto said = [](const std::string& words, bool is_hasty) {
    Connection connection(std::make_unique<Doorman>(words, is_hasty), "redis at nowhere:1");
    try {
      connection.run(Commands().add({"AUTH", "canary"}).add({"PING"}),
                     BootClock::now() + std::chrono::seconds(60));
      return std::string("none");
    } catch (const Error& error) {
      return error.code().message() + ": " + error.what();
    }
  };
  for (const bool is_hasty : {false, true}) {
    EXPECT_THAT(said("-DENIED Redis is running in protected mode because\r\n", is_hasty),
                HasSubstr("requirepass"));
    EXPECT_THAT(said("-ERR max number of clients reached\r\n", is_hasty), HasSubstr("maxclients"));
    const std::string other = said("-ERR unknown command 'AUTH', with: 'canary'\r\n", is_hasty);
    EXPECT_THAT(other, HasSubstr(is_hasty ? "Broken pipe" : "closed the connection"));
    EXPECT_EQ(other.find("canary"), other.npos);
    EXPECT_THAT(said("", is_hasty), HasSubstr("unknown"));
  }
}

// Its answers find no memory.
class TooMuch : public Transport {
 public:
  TooMuch() : Transport(eventfd(0, EFD_CLOEXEC)) {}
  Moved read(char*, std::size_t) override { throw std::bad_alloc(); }
  Moved wait_and_read(char* to, std::size_t most) override { return read(to, most); }
  Moved write(const char*, std::size_t count) override { return {count, 0}; }
  bool is_open() const noexcept override { return true; }
};

// Answers may have been lost: what comes next would be taken for them.
TEST(RedisConnection, AfterAnyTroubleItIsNotUsedAgain) {
  Connection connection(std::make_unique<TooMuch>(), "redis at nowhere:1");
  ASSERT_TRUE(connection.is_usable());
  const LocalTime soon = BootClock::now() + std::chrono::seconds(60);
  EXPECT_THROW(connection.run(Commands().add({"PING"}), soon), std::bad_alloc);
  EXPECT_FALSE(connection.is_usable());
}

TEST(RedisLink, WhateverADriverMeetsTheOthersHearOfIt) {
  kit::Pool::Options options;
  options.open = [](const kit::StopSignal&) {
    return std::make_unique<Connection>(std::make_unique<TooMuch>(), "redis at nowhere:1");
  };
  kit::Pool pool(std::move(options));
  const LocalTime soon = BootClock::now() + std::chrono::seconds(60);
  Link link(pool.borrow(Lane::kKeep, soon));
  Replies replies;
  EXPECT_THROW(link.run(Commands().add({"PING"}), soon, replies), Error);
  EXPECT_TRUE(link.is_broken());
  EXPECT_FALSE(link.run(Commands().add({"PING"}), soon, replies)) << "and nobody drives";
}

class Listening {
 public:
  explicit Listening(int backlog) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_.get(), as_any(), sizeof address_), 0);
    socklen_t size = sizeof address_;
    getsockname(socket_.get(), as_any(), &size);
    EXPECT_EQ(listen(socket_.get(), backlog), 0);
  }
  sockaddr* as_any() { return reinterpret_cast<sockaddr*>(&address_); }
  addrinfo entry() {
    addrinfo info{};
    info.ai_family = AF_INET;
    info.ai_addr = as_any();
    info.ai_addrlen = sizeof address_;
    return info;
  }

 private:
  const servers::UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_{};
};

// Full: whoever knocks is not even refused.
TEST(RedisTransport, AnAddressThatSwallowsEverythingDoesNotHideTheOthers) {
  Listening black_hole(0), good(8);
  std::vector<servers::UniqueFd> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(waiting.back().get(), black_hole.as_any(), sizeof(sockaddr_in)));
  }
  addrinfo first = black_hole.entry(), unknown{}, last = good.entry();
  unknown.ai_family = -1;  // as IPv6 where it is turned off
  first.ai_next = &unknown;
  unknown.ai_next = &last;
  const kit::StopSignal never;
  const LocalTime deadline = BootClock::now() + std::chrono::seconds(3);
  const servers::UniqueFd connected(connect_first(&first, deadline, never));
  EXPECT_GE(connected.get(), 0);
  EXPECT_LT(BootClock::now(), deadline);
}

TEST(RedisUrl, TheDefaultsAreALocalServer) {
  for (const char* url : {"redis:", "redis://", "redis:///"}) {
    const RedisOptions options = redis_options(url);
    EXPECT_THAT(options.hosts, ElementsAre("127.0.0.1:6379")) << url;
    EXPECT_EQ(options.topology, Topology::kServer);
    EXPECT_EQ(options.transport, RedisOptions::Transport::kPlain);
    EXPECT_EQ(options.queue, RedisOptions::Queue::kShared) << "old and new JVM versions are served";
    EXPECT_EQ(options.restart_guard, RedisOptions::RestartGuard::kOn);
    EXPECT_EQ(options.replicas, 0u);
  }
}

TEST(RedisUrl, HostUserPasswordAndDatabase) {
  const RedisOptions options = redis_options("rediss://me:p%40ss%3A@db.example:7000/3?replicas=2");
  EXPECT_THAT(options.hosts, ElementsAre("db.example:7000"));
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "p@ss:");
  EXPECT_EQ(options.database, 3);
  EXPECT_EQ(options.replicas, 2u);
  EXPECT_EQ(options.transport, RedisOptions::Transport::kTls);
  EXPECT_EQ(redis_options("redis://:secret@h").password, "secret");
  EXPECT_EQ(redis_options("redis://:secret@h").user, "");
}

TEST(RedisUrl, ASocketIsAPathWithoutAHost) {
  EXPECT_THAT(redis_options("redis:///run/redis/r.sock").hosts, ElementsAre("/run/redis/r.sock"));
  EXPECT_THAT(redis_options("redis://me:pw@/run/r.sock").hosts, ElementsAre("/run/r.sock"));
}

TEST(RedisUrl, SentinelsAndClustersNameSeveralHosts) {
  const RedisOptions sentinel = redis_options("redis+sentinel://a,b:1,[::1]:2/orders?database=2");
  EXPECT_EQ(sentinel.topology, Topology::kSentinel);
  EXPECT_THAT(sentinel.hosts, ElementsAre("a", "b:1", "[::1]:2"));
  EXPECT_EQ(sentinel.master, "orders");
  EXPECT_EQ(sentinel.database, 2);
  const Dialer dialer(sentinel);
  EXPECT_EQ(dialer.hosts()[0], (Address{"a", 26379}));
  EXPECT_EQ(dialer.hosts()[2], (Address{"::1", 2}));
  EXPECT_EQ(redis_options("rediss+cluster://a,b").topology, Topology::kCluster);
  EXPECT_EQ(redis_options("rediss+cluster://a,b").transport, RedisOptions::Transport::kTls);
}

TEST(RedisUrl, WhatIsWrongIsNamedAndValuesAreNotRepeated) {
  EXPECT_THAT(refusal("redis://h?queu=own"), HasSubstr("did you mean 'queue'"));
  EXPECT_THAT(refusal("redis://h?queue=canary"), HasSubstr("shared or own"));
  EXPECT_THAT(refusal("redis://h?replicas=many"), HasSubstr("0 to 100"));
  EXPECT_THAT(refusal("redis://h/x"), HasSubstr("database"));
  EXPECT_THAT(refusal("redis://a,b"), HasSubstr("redis+sentinel"));
  EXPECT_THAT(refusal("redis+sentinel://a"), HasSubstr("master"));
  EXPECT_THAT(refusal("redis+cluster://a/1"), HasSubstr("database 0"));
  EXPECT_THAT(refusal("redis://h:99999"), HasSubstr("65535"));
  EXPECT_THAT(refusal("redis:h"), HasSubstr("//"));
  EXPECT_THAT(refusal("redis://h?password-file=/nowhere"), HasSubstr("password-file"));
  EXPECT_THAT(refusal("redis://h?cert-file=x"), HasSubstr("key-file"));
  // No silent downgrade.
  for (const char* url : {"rediss:///run/r.sock", "rediss:?socket=/run/r.sock",
                          "rediss+sentinel://%2Frun%2Fs.sock/m", "rediss://%2Frun%2Fr.sock"}) {
    EXPECT_THAT(refusal(url), HasSubstr("TLS is not spoken")) << url;
  }
  for (const char* url :
       {"redis://canary:canary@h?queue=canary", "redis://h/canary", "redis://u:pa?canary=1@h"}) {
    EXPECT_EQ(refusal(url).find("canary"), std::string::npos) << url;
  }
}

TEST(RedisNames, SlotsAreThoseOfACluster) {
  // As CLUSTER KEYSLOT says.
  EXPECT_EQ(slot_of("foo"), 12'182);
  EXPECT_EQ(slot_of("bar"), 5'061);
  EXPECT_EQ(slot_of("foo}x"), 12'182) << "what is behind the first brace does not count";
}

TEST(RedisNames, KeysAndMutexesAreTakenApart) {
  EXPECT_EQ(lease_key("m"), "simba:{m}");
  EXPECT_EQ(mutex_of("simba:{m}"), "m");
  EXPECT_EQ(mutex_of("simba:{a}b}"), "a}b");
  EXPECT_EQ(mutex_of("simba:{m}:fence"), "");
  EXPECT_EQ(mutex_of("other:{m}"), "");
  EXPECT_EQ(scan_pattern("a*[?"), "simba:{a\\*\\[\\?*}");
}

TEST(RedisNames, MessagesAreReadOrIgnored) {
  EXPECT_EQ(parse_message("released@@a~1").news, News::kReleased);
  EXPECT_EQ(parse_message("released@@a~1").id, "a~1");
  EXPECT_EQ(parse_message("acquired@@").news, News::kAcquired);
  for (const char* text : {"", "@@", "released", "RELEASED@@x", "nonsense@@x"}) {
    EXPECT_EQ(parse_message(text).news, News::kOther) << text;
  }
}

TEST(RedisReply, PiecesOfAnyLengthMakeTheSameReplies) {
  const std::string bytes = "*3\r\n:17\r\n$5\r\nab\r\nc\r\n*1\r\n$-1\r\n-NOSCRIPT no\r\n+OK\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    ReplyReader reader;
    Replies replies;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece), replies);
    }
    ASSERT_EQ(replies.size(), 3u) << piece;
    EXPECT_EQ(replies[0].items.at(0).number, 17);
    EXPECT_EQ(replies[0].items.at(1).text, "ab\r\nc");
    EXPECT_EQ(replies[0].items.at(2).items.at(0).kind, Reply::Kind::kNil);
    EXPECT_TRUE(replies[1].is_error("NOSCRIPT"));
    EXPECT_FALSE(replies[1].is_error("NO"));
    EXPECT_EQ(replies[2].text, "OK");
  }
}

TEST(RedisReply, WhatIsNoReplyIsCorrupt) {
  for (const char* bytes : {"HTTP/1.1 400\r\n", "*99999999\r\n", "$-7\r\n\r\n", ":x\r\n"}) {
    ReplyReader reader;
    Replies replies;
    EXPECT_THROW(reader.feed(bytes, replies), Error) << bytes;
  }
}

TEST(RedisReply, ARepliesItemsAndBytesAreCountedWithAllThatIsInIt) {
  const std::string text(std::size_t{40} << 20, 'x');
  const std::string bulk = "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  std::string two = "*2\r\n";
  two.append(bulk).append(bulk);
  for (const std::string& bytes : {std::string("*600000\r\n*600000\r\n"), two}) {
    ReplyReader reader;
    Replies replies;
    EXPECT_THROW(reader.feed(bytes, replies), Error) << bytes.substr(0, 20);
  }
  ReplyReader reader;  // one after the other is no more than one
  Replies replies;
  for (int i = 0; i < 2; ++i) reader.feed(bulk, replies);
  EXPECT_EQ(replies.size(), 2u);
}

TEST(RedisCommands, WordsMayHoldAnything) {
  Words words;
  words.text("a\r\nb").text({}).number(-17).text("x", "y");
  EXPECT_EQ(Commands().add({"SET"}, words, {"end"}).bytes(),
            "*6\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$3\r\n-17\r\n$2\r\nxy\r\n$3\r\nend\r\n");
}

// What is not understood is never ownership.
TEST(RedisAnswers, HostileAnswersAreCorrupt) {
  const Claim claim{"m", "a~1", 0, 0, milliseconds(10), milliseconds(5)};
  const std::vector<Reply> hostile{
      number(1),
      text(""),
      text("0"),
      text("-5"),
      text("17x"),
      text("1152921504606846976"),
      array({}),
      array({text("1")}),
      array({text("now"), text("5")}),
      array({text("1"), text("0")}),
      array({text("1"), text("-7")}),
      array({text("1"), number(7)}),
      array({text("1"), text("5"), number(10), text("a~1")}),
      array({text("1"), text("5"), number(-9), text("a~1"), text("")}),
      array({text("1"), text("5"), number(9), number(3), text("")}),
      array({text("1"), text("5"), number(std::numeric_limits<std::int64_t>::max())}),
  };
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    EXPECT_THROW(read_take(claim, hostile[i], "here"), Error) << i;
  }
  Answers answers(1, Blocked{});
  for (const Reply& each :
       {array({text("1")}), array({text("now"), text("10 5 1 a~1")}), number(1)}) {
    EXPECT_THROW(read_renewals({&claim, 1}, each, "here", answers), Error);
    EXPECT_THROW(read_observations(each, "here", answers), Error);
  }
}

TEST(RedisAnswers, AHostileAnswerOfManyFailsNoneOfItsNeighbours) {
  const Claim claim{"m", "a~1", 7, 0, milliseconds(10), milliseconds(5)};
  const std::vector<Claim> claims(3, claim);
  const auto free = array({text("0"), number(-2), text(""), text("")});
  const auto held = array({text("7"), number(9), text("a~1"), text("")});
  Answers answers(3, Blocked{});
  const auto expect_a_good_neighbourhood = [&] {
    EXPECT_TRUE(std::get<Observation>(answers[0]).is_free());
    ASSERT_TRUE(std::holds_alternative<Error>(answers[1]));
    EXPECT_EQ(std::get<Error>(answers[1]).errc(), Errc::kCorrupt);
    EXPECT_EQ(std::get<Observation>(answers[2]).owner.token, 7U);
  };
  for (const Reply& each : {number(1), nil(), array({text("x"), number(9), text("a~1"), text("")}),
                            array({text("7"), number(-9), text("a~1"), text("")})}) {
    answers.assign(3, Blocked{});
    read_renewals(claims, array({text("5000000"), free, each, held}), "here", answers);
    expect_a_good_neighbourhood();
    answers.assign(3, Blocked{});
    read_observations(array({text("5000000"), free, each, held}), "here", answers);
    expect_a_good_neighbourhood();
  }
  for (const char* each : {"", "0", "OK", "10 5 1 ", "10 5 1 b~1", "10 5 a~1", "-10 5 1 a~1"}) {
    SCOPED_TRACE(std::string(each) + " renews nobody");
    answers.assign(3, Blocked{});
    read_renewals(claims, array({text("5000000"), free, text(each), text("10 5 1 a~1")}), "here",
                  answers);
    expect_a_good_neighbourhood();
  }
}

TEST(RedisAnswers, ALeaseWithoutSenseOrEndIsALongOne) {
  const Claim claim{"m", "a~1", 0, 0, milliseconds(10), milliseconds(5)};
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t left : {std::int64_t{-1}, kMost}) {
    const Observation seen = read_take(claim,
                                       array({text("1"), text("5"), number(left), text("b~1"),
                                              text("1 " + std::to_string(kMost) + " 1 b~1")}),
                                       "here");
    EXPECT_GT(seen.owner.transition_at, seen.now);
    EXPECT_FALSE(seen.owner.ttl_at) << "details beyond all sense are not believed";
  }
}

TEST(RedisFailure, ErrorsSayWhatToDo) {
  const auto said = [](const std::string& text) {
    const Error error = failure({Reply::Kind::kError, 0, text, {}}, "redis at h");
    return error.code().message() + ": " + error.what();
  };
  const auto code = [](Errc errc) { return make_error_code(errc).message(); };
  EXPECT_THAT(said("NOAUTH Authentication required."), HasSubstr("password-file"));
  EXPECT_THAT(said("NOPERM no"), HasSubstr("ACL SETUSER"));
  EXPECT_THAT(said("READONLY You can't"), HasSubstr("redis+sentinel"));
  EXPECT_THAT(said("MOVED 1 h:1"), HasSubstr("redis+cluster"));
  EXPECT_THAT(said("LOADING"), HasSubstr(code(Errc::kUnreachable)));
  EXPECT_THAT(said("ERR unknown command 'X'"), HasSubstr("6.2"));
  EXPECT_THAT(said("ERR odd\nline"), HasSubstr("odd line"));
}

TEST(RedisFailure, RepeatsNoMoreThanTheBeginningAndNothingThatATerminalObeys) {
  const Reply said = error("NOAUTH \x1b]0;x\a\r\n\x9b" + std::string(10'000, 'x'));
  for (const Error& failed : {failure(said, "h"), sentinel_failure(said, "h")}) {
    EXPECT_THAT(failed.what(),
                ::testing::AllOf(HasSubstr("(NOAUTH ?]0;x?  ?xxx"), HasSubstr("...")));
    EXPECT_LT(std::string_view(failed.what()).size(), 1'000U);
  }
}

// Redis 7 begins with the word also where a script met the error.
TEST(RedisFailure, TroubleInAScriptOfRedis6IsKnownByItsWord) {
  const auto reply = [](const std::string& text) {
    return Reply{Reply::Kind::kError,
                 0,
                 "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): "
                 "@user_script:26: @user_script: 26: -" +
                     text,
                 {}};
  };
  const Reply replica = reply("READONLY You can't write against a read only replica.");
  EXPECT_EQ(failure(replica, "here").errc(), Errc::kDenied);
  EXPECT_TRUE(wants_another_server(replica));
  for (const char* text :
       {"OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to "
        "persist on disk.",
        "NOREPLICAS Not enough good replicas to write."}) {
    EXPECT_EQ(failure(reply(text), "here").errc(), Errc::kUnreachable) << text;
    EXPECT_FALSE(wants_another_server(reply(text))) << text;
  }
  EXPECT_EQ(failure(reply("ERR odd"), "here").errc(), Errc::kCorrupt);
}

// What has no word of its own: of Redis 6 and newer, of older ones, of those without users.
TEST(RedisFailure, WhatAuthIsAnsweredIsAdviceAndNotRepeated) {
  const auto said = [](const std::string& text) {
    const Error why = login_failure(error(text), "redis at h");
    return make_error_code(why.errc()).message() + ": " + why.what();
  };
  const std::string denied = make_error_code(Errc::kDenied).message();
  const std::pair<const char*, const char*> answers[] = {
      {"WRONGPASS invalid username-password pair or user is disabled.", "password is wrong"},
      {"ERR invalid password", "password is wrong"},
      {"ERR AUTH <password> called without any password configured for the default user. Are you "
       "sure your configuration is correct?",
       "has no password"},
      {"ERR Client sent AUTH, but no password is set", "has no password"},
      {"ERR wrong number of arguments for 'auth' command", "redis://:password@host"},
  };
  for (const auto& [answer, advice] : answers) {
    EXPECT_THAT(said(answer), ::testing::StartsWith(denied)) << answer;
    EXPECT_THAT(said(answer), HasSubstr(advice)) << answer;
    EXPECT_EQ(said(answer).find(answer), std::string::npos) << answer;
  }
  EXPECT_THAT(said("ERR unknown command 'AUTH', with args beginning with: 'canary'"),
              ::testing::StartsWith(make_error_code(Errc::kMisconfigured).message()));
  EXPECT_THAT(said("ERR odd canary"), ::testing::Not(HasSubstr("canary")));
  EXPECT_THAT(said("LOADING Redis is loading"), HasSubstr("still loads"));
}

TEST(RedisFailure, ASentinelHasUsersOfItsOwn) {
  const auto reply = [](const std::string& text) {
    return Reply{Reply::Kind::kError, 0, text, {}};
  };
  const Reply loading = reply("LOADING");
  EXPECT_THAT(sentinel_failure(reply("NOAUTH Authentication required."), "there").what(),
              HasSubstr("sentinel-password-file"));
  EXPECT_THAT(sentinel_failure(reply("NOPERM this user has no permissions"), "there").what(),
              HasSubstr("+sentinel|get-master-addr-by-name"));
  EXPECT_STREQ(sentinel_failure(loading, "there").what(), failure(loading, "there").what());
}

// How many of these go out together, one pipeline after the other.
std::vector<int> pipelines(const std::vector<Request>& requests) {
  std::vector<int> counts;
  for (std::size_t i = 0; i < requests.size();) {
    Pipeline pipeline;
    counts.push_back(0);
    while (i < requests.size() && pipeline.takes(requests[i])) ++i, ++counts.back();
  }
  return counts;
}

Request costing(unsigned microseconds, bool acknowledged = false) {
  Request request;
  request.cost = microseconds;
  request.acknowledged = acknowledged;
  return request;
}

TEST(RedisPipeline, TakesHalfAMillisecondOfTheServersTimeAtMost) {
  EXPECT_THAT(pipelines(std::vector<Request>(11, costing(100))), ElementsAre(5, 5, 1));
  EXPECT_THAT(pipelines({costing(499), costing(2), costing(498), costing(1)}),
              ElementsAre(1, 2, 1));
  EXPECT_THAT(pipelines({costing(9'000), costing(1)}), ElementsAre(1, 1)) << "at least one";
}

TEST(RedisPipeline, WhatReplicasMustAcknowledgeGoesApart) {
  EXPECT_THAT(pipelines({costing(1), costing(1), costing(1, true), costing(1)}),
              ElementsAre(2, 1, 1));
}

TEST(RedisPipeline, RenewalsDoNotWaitForReplicasTogetherWithTakes) {
  Request take = costing(1, true), renewal = costing(1, true);
  take.kind = Request::Kind::kTake;
  renewal.kind = Request::Kind::kWrite;
  EXPECT_THAT(pipelines({renewal, renewal, take, take, take}), ElementsAre(2, 3));
  take.acknowledged = renewal.acknowledged = false;
  EXPECT_THAT(pipelines({renewal, renewal, take, take, take}), ElementsAre(5));
}

// A script holds up everybody, as a pipeline does not.
TEST(RedisPipeline, AThousandRenewalsAreManyShortScriptsInManyPipelines) {
  const Requests make(redis_options("redis:"), "me~1");
  const std::vector<Claim> claims(make.per_request(),
                                  Claim{"m", "a~1", 7, 0, milliseconds(10), {}});
  const Request script = make.renew(claims);
  EXPECT_LE(script.cost, 100U);
  EXPECT_GE(script.cost, 2 * claims.size()) << "of a renewal";
  const std::vector<Request> all(1'000 / claims.size(), script);
  for (const int count : pipelines(all)) {
    EXPECT_LE(static_cast<unsigned>(count) * script.cost, 500U);
  }
}

// In a cluster each has a script of its own, which costs the server more.
TEST(RedisPipeline, RenewalsThatGoAloneAreFewerInAPipeline) {
  const Requests make(redis_options("redis+cluster:"), "me~1");
  ASSERT_EQ(make.per_request(), 1U);
  const Claim claim{"m", "a~1", 7, 0, milliseconds(10), {}};
  constexpr double kMeasured = 5;  // microseconds
  for (const int count : pipelines(std::vector<Request>(1'000, make.renew({&claim, 1})))) {
    EXPECT_LE(count * kMeasured, 500);
  }
}

// One line, whatever the page has between its words.
std::string joined(std::istream&& in) {
  std::string all;
  for (std::string word; in >> word;) all += word + ' ';
  return all;
}

TEST(RedisFailure, ThePageGrantsWhatTheErrorSays) {
  const std::string page = joined(std::ifstream(SIMBA_REDIS_PAGE));
  for (const std::string& rights :
       {contender_acl(Topology::kServer), observer_acl(Topology::kServer)}) {
    EXPECT_THAT(page, HasSubstr(joined(std::istringstream(rights))));
  }
}

TEST(RedisFailure, InAClusterThereAreRightsBesides) {
  for (const std::string& more : {std::string("+cluster|slots"), std::string("+asking")}) {
    EXPECT_THAT(contender_acl(Topology::kCluster), HasSubstr(more));
    EXPECT_THAT(observer_acl(Topology::kCluster), HasSubstr(more));
    EXPECT_THAT(prepare("redis+cluster://h", Prepare::kTell).statements, HasSubstr(more));
    EXPECT_EQ(prepare("redis://h", Prepare::kTell).statements.find(more), std::string::npos);
    EXPECT_THAT(failure(error("NOPERM no"), "here").what(), HasSubstr(more));
  }
}

TEST(RedisAnswers, WhoAsksTooEarlyIsToldTheSecondsThatAreLeft) {
  const Claim claim{"m", "a~1", 0, 0, milliseconds(10'000), milliseconds(5'000)};
  const auto said = [&](std::int64_t left) {
    try {
      read_take(claim, array({text("1000000"), text(""), number(left)}), "here");
      return std::string("it was granted");
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kUnreachable);
      return std::string(error.what());
    }
  };
  EXPECT_THAT(said(1'500), HasSubstr("granted in 2 s"));
  EXPECT_THAT(said(1'500), HasSubstr("restart-guard=off"));
  EXPECT_THAT(said(3'600'000), HasSubstr("granted in 15 s")) << "its clock was set back";
}

TEST(RedisDialer, OnlyWhatWritesDownEachGrantForgetsNone) {
  EXPECT_TRUE(read_info("aof_enabled:1\r\nrdb_last_load_keys_loaded:0\r\n", {}).persists);
  EXPECT_FALSE(read_info("aof_enabled:0\r\nrdb_last_load_keys_loaded:5\r\n", {}).persists);
}

// Started at 10.999 s and asked at 12.001 s, a server says 12 - 10.
TEST(RedisDialer, AServerHasNotBeenUpForLongerThanItsWholeSecondsProve) {
  EXPECT_EQ(latest_start(12'001, 2), 11'000);
  EXPECT_EQ(latest_start(12'999, 2), 11'000);
  EXPECT_EQ(latest_start(12'000, 0), 13'000);
}

}  // namespace
}  // namespace simba::redis
