#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "stores/redis/failure.h"
#include "stores/redis/redis_fixture.h"
#include "stores/redis/scripts.h"

// What users may do whose rights are few, or too few: each with an error a person can act on.
namespace simba::redis {
namespace {

constexpr auto kServer = RedisOptions::Topology::kServer;

// A user of the case's own, with these rules, and a URL for it.
class UserTest : public RedisTest {
 protected:
  void make_user(const std::vector<std::string>& rules) {
    user = "user." + m;
    std::vector<std::string> words{"ACL", "SETUSER", user, "on", ">secret-canary"};
    words.insert(words.end(), rules.begin(), rules.end());
    ASSERT_EQ(admin()(words), "OK");
  }
  void TearDown() override {
    if (!user.empty()) admin()({"ACL", "DELUSER", user});
    RedisTest::TearDown();
  }
  std::string with_user(const std::string& password = "secret-canary") const {
    return as(user + ':' + password);
  }
  std::string as(const std::string& who) const {
    std::string out = url();
    const std::size_t at = out.find("//") + 2;
    if (const std::size_t end = out.find('@'); end != out.npos) out.erase(at, end + 1 - at);
    return out.insert(at, who + '@');
  }
  std::shared_ptr<Store> open_as_user() { return open_alone(with_user(), log.sink()); }

  // What the store tells an administrator to run, without the name and the password.
  static std::vector<std::string> rules_of(const std::string& command) {
    std::istringstream words(command.substr(command.find(">PASSWORD ") + 10));
    return {std::istream_iterator<std::string>(words), {}};
  }

  const std::vector<std::string> contender = rules_of(contender_acl(kServer));
  const std::vector<std::string> observer = rules_of(observer_acl(kServer));
  std::string user;
};

TEST_F(UserTest, AContenderNeedsOnlyWhatThePageGrants) {
  make_user(contender);
  const auto store = open_as_user();
  const auto other = open_as_user();
  const Token token = take(*store, m, "a~1").owner.token;
  const Hints hints(*other, m);
  ASSERT_TRUE(hints.awaits_live());
  take(*other, m, "b~1");
  observe(*other, m);
  EXPECT_EQ(renew(*store, m, "a~1", token).owner.token, token);
  const int before = hints.count();
  release(*store, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > before; }));
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "b~1");
  EXPECT_EQ(store->list(m, {}, 10, soon()).size(), 1u);
  const Token last = observe(*other, m).owner.token;
  EXPECT_TRUE(store->evict(m, "b~1", last, Eviction::kFreeNow, soon()).is_free());
  // There is no replica here: WAIT was allowed, and counted none.
  const auto careful = open_alone(with_user() + "&replicas=1", log.sink());
  EXPECT_TRUE(lacks_a_replica([&](LocalTime by) { take(*careful, m, "c~1", 0, 20s, 10s, by); }));
}

TEST_F(UserTest, AnObserverNeedsNoRightToWrite) {
  make_user(observer);
  const auto owner = open();
  take(*owner, m, "a~1");
  const auto store = open_as_user();
  EXPECT_EQ(observe(*store, m).owner.id, "a~1");
  EXPECT_EQ(store->list(m, {}, 10, soon()).size(), 1u);
  const Hints hints(*store, m);
  ASSERT_TRUE(hints.awaits_live());
  const int before = hints.count();
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return hints.count() > before; }));
  const std::string said = error_of([&] { take(*store, m, "b~1"); });
  EXPECT_THAT(said, HasSubstr("ACL SETUSER"));
  EXPECT_TRUE(observe(*store, m).is_free());
}

// Redis 7.0 does not name it where a script ran it, but its log does, as the error says.
TEST_F(UserTest, ADeniedCommandIsInTheLogThatTheErrorNamesAndNothingIsTaken) {
  for (const char* denied : {"publish", "set", "time"}) {
    std::vector<std::string> rules = contender;
    rules.push_back(std::string("-") + denied);
    make_user(rules);
    const auto store = open_as_user();
    const std::string said = error_of([&] { take(*store, m, "a~1"); });
    EXPECT_THAT(said, HasSubstr("ACL SETUSER")) << denied;
    EXPECT_THAT(said, HasSubstr("ACL LOG")) << denied;
    EXPECT_THAT(admin()({"ACL", "LOG"}),
                HasSubstr("object|" + std::string(denied) + "|username|" + user));
    EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kDenied, "").code().message())) << denied;
    EXPECT_EQ(admin()({"EXISTS", key(), key(":token"), key(":lease")}), "0") << denied;
    admin()({"ACL", "SETUSER", user, "reset"});
  }
}

// What would stop the others, or tell of them, is not among the rights.
TEST_F(UserTest, NeitherContenderNorObserverMayHarmAServer) {
  const std::vector<std::vector<std::string>> harmful{
      {"CLIENT", "PAUSE", "1"},   {"CLIENT", "KILL", "TYPE", "pubsub"},
      {"CLIENT", "LIST"},         {"CLIENT", "NO-EVICT", "on"},
      {"SCRIPT", "FLUSH"},        {"SCRIPT", "KILL"},
      {"FUNCTION", "FLUSH"},      {"FLUSHALL"},
      {"CONFIG", "GET", "save"},  {"KEYS", "*"},
      {"PUBSUB", "CHANNELS"},     {"SHUTDOWN", "NOW"},
      {"REPLICAOF", "NO", "ONE"}, {"DEBUG", "SLEEP", "0"},
      {"GET", "not-ours"},        {"PUBLISH", "not-ours", "x"},
  };
  // On a dry run: were one of them granted, it would do its harm.
  for (const auto& role : {contender, observer}) {
    make_user(role);
    for (const auto& command : harmful) {
      std::vector<std::string> words{"ACL", "DRYRUN", user};
      words.insert(words.end(), command.begin(), command.end());
      EXPECT_THAT(admin()(words), HasSubstr("no permissions")) << command[0];
    }
    admin()({"ACL", "SETUSER", user, "reset"});
  }
}

// Under names that follow from nothing, each script does all it can, for a user who may touch what
// is declared and nothing else.
TEST_F(UserTest, TheScriptsTouchTheKeysThatAreDeclaredAlone) {
  const std::string lease = "a" + m, fence = "b" + m, token = "c" + m, details = "d" + m,
                    queue = "e" + m;
  make_user({"~" + lease, "~" + fence, "~" + token, "~" + details, "~" + queue, "&*", "+@all"});
  Admin its(with_user()), listener(url());
  const auto take = [&](const std::string& id, const std::string& was, const std::string& after) {
    return its({"EVAL", std::string(acquire_script().text), "5", lease, fence, token, details,
                queue, id, "20000", "10 5 ", "0", "place", was, after});
  };
  const auto renew = [&](const std::string& id, const std::string& of, const std::string& shape) {
    return its({"EVAL", std::string(guard_script().text), "3", lease, token, details, id, of,
                "20000", shape});
  };
  const auto release = [&](const std::string& id, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{
        "EVAL", std::string(release_script().text), "4", lease, token, details, queue, id};
    words.insert(words.end(), more.begin(), more.end());
    return its(words);
  };
  const std::string digits = "[0-9]+", us = digits;
  const auto says = [](const std::string& pattern) { return ::testing::MatchesRegex(pattern); };
  EXPECT_THAT(take("x", "0", "99999999999999"), says(us + "[|][|]" + digits)) << "too early";
  const std::string first = take("x", "0", "0");
  ASSERT_THAT(first, says(us)) << "granted";
  EXPECT_THAT(take("x", "0", "0"), says(us + "[|]" + first + "[|]20000[|]x[|]10 5 .* x"));
  admin()({"ZADD", queue, "1", "dead"});
  EXPECT_THAT(take("y", "0", "0"), says(us + "[|]" + first + "[|]" + digits + "[|]x[|]10 5 .* x"));
  EXPECT_EQ(admin()({"ZRANGE", queue, "0", "-1"}), "place") << "queued, and the dead dropped";
  EXPECT_THAT(renew("x", first, "10 5 "), says(us + "[|]10 5 .* x"));
  EXPECT_THAT(renew("x", first, "20 5 "), says(us + "[|]20 5 .* x")) << "for longer";
  EXPECT_THAT(renew("y", first, "10 5 "), says(us + "[|]" + first + "[|].*[|]x[|].*"));
  listener.subscribe({lease});
  EXPECT_EQ(release("y"), "0");
  EXPECT_EQ(release("x", {first}), "1");
  EXPECT_EQ(admin()({"EXISTS", lease, token, details, queue}), "0") << "woken";
  admin()({"ZADD", queue, "1", "place"});
  const std::string second = take("y", "1", "0");
  EXPECT_THAT(second, says(us));
  EXPECT_EQ(admin()({"EXISTS", queue}), "0") << "out of the queue";
  EXPECT_EQ(release("y", {second, "keep"}), "1");
  admin()({"DEL", lease, fence, token, details});
}

TEST_F(UserTest, AUserWithoutAPasswordIsNotSomebodyElse) {
  make_user(contender);
  const std::string denied = Error(Errc::kDenied, "").code().message();
  EXPECT_THAT(error_of([&] { observe(*open_alone(as(user)), m); }), ::testing::StartsWith(denied))
      << "it has a password";
  admin()({"ACL", "SETUSER", user, "nopass"});
  const std::string name = "alone" + m;
  const auto store = open_alone(as(user) + "&client-name=" + name);
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "a~1");
  const std::string all = admin()({"CLIENT", "LIST"});
  const std::string line = all.substr(all.find("name=" + name));
  EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("user=" + user));
}

// Every command of every script, forbidden in turn while it is needed for something: that is done,
// or it is an error and everything is as it was.
class DeniedTest : public UserTest {
 protected:
  void SetUp() override {
    UserTest::SetUp();
    if (IsSkipped()) return;
    make_user(contender);
    store = open_as_user();
    other = open();
  }
  static std::set<std::string> commands() {
    std::set<std::string> all;
    for (const Script* script : {&acquire_script(), &guard_script(), &release_script()}) {
      const std::string text(script->text);
      const std::regex call("call\\('(\\w+)'");
      for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
        all.insert((*it)[1]);
      }
    }
    return all;
  }
  // A name nobody has used, with its keys.
  void next_mutex() { mutex = m + '.' + std::to_string(++count_); }
  std::string its(const std::string& suffix = {}) const { return "simba:{" + mutex + "}" + suffix; }
  std::string values() {
    return admin()({"MGET", its(), its(":fence"), its(":token"), its(":lease")});
  }
  // A place may get lost, and be taken again at the next poll.
  std::int64_t queued() { return admin().ask({"ZCARD", its(":contender")}).number; }
  std::int64_t left(const std::string& suffix = {}) {
    return admin().ask({"PTTL", its(suffix)}).number;
  }
  void hold(Store& by, const std::string& id) { token = take(by, mutex, id).owner.token; }
  // The user listens, and so it queues where it is refused.
  void listen() {
    hints_ = std::make_unique<Hints>(*store, mutex);
    ASSERT_TRUE(hints_->awaits_live());
  }
  void vanish() { admin()({"DEL", its(), its(":token"), its(":lease")}); }
  std::string refused(const std::string& command, const std::function<void()>& act) {
    admin()({"ACL", "SETUSER", user, '-' + command});
    std::string said = error_of(act);
    admin()({"ACL", "SETUSER", user, '+' + command});
    return said;
  }

  std::shared_ptr<Store> store, other;
  std::string mutex;
  Token token = 0;

 private:
  int count_ = 0;
  std::unique_ptr<Hints> hints_;
};

TEST_F(DeniedTest, WhatErrsHasChangedNothing) {
  struct Scene {
    const char* what;
    std::function<void()> before, act;
  };
  const Scene scenes[] = {
      {"a first take", [] {}, [&] { hold(*store, "a~1"); }},
      {"a take", [&] { hold(*other, "b~1"), release(*other, mutex, "b~1"); },
       [&] { hold(*store, "a~1"); }},
      {"a take out of the queue",
       [&] { listen(), hold(*other, "b~1"), take(*store, mutex, "a~1"), vanish(); },
       [&] { hold(*store, "a~1"); }},
      {"a take again", [&] { hold(*store, "a~1"); }, [&] { hold(*store, "a~1"); }},
      {"a take again of a term without a token",
       [&] {
         hold(*store, "a~1"), admin()({"DEL", its(":token")});
       },
       [&] { hold(*store, "a~1"); }},
      {"a take that is refused", [&] { listen(), hold(*other, "b~1"); },
       [&] { take(*store, mutex, "a~1"); }},
      {"one beside the dead",
       [&] {
         listen(), hold(*other, "b~1"), admin()({"ZADD", its(":contender"), "1", "dead"});
       },
       [&] { take(*store, mutex, "a~1"); }},
      {"a renewal", [&] { hold(*store, "a~1"); }, [&] { renew(*store, mutex, "a~1", token); }},
      {"a renewal for longer", [&] { hold(*store, "a~1"); },
       [&] { renew(*store, mutex, "a~1", token, 40s, 20s); }},
      {"a renewal that is too late", [&] { hold(*store, "a~1"), vanish(), hold(*other, "b~1"); },
       [&] { renew(*store, mutex, "a~1", token - 1); }},
  };
  for (const std::string& command : commands()) {
    for (const Scene& scene : scenes) {
      SCOPED_TRACE(command + " is denied to " + scene.what);
      next_mutex();
      scene.before();
      const std::string values_before = values();
      const std::int64_t left_before = left(), token_before = left(":token");
      const std::int64_t queued_before = queued();
      const std::string said = refused(command, scene.act);
      if (said == "none") continue;
      EXPECT_THAT(said, HasSubstr("ACL SETUSER"));
      EXPECT_EQ(values(), values_before);
      EXPECT_LE(queued(), queued_before);
      EXPECT_LE(left(), left_before) << "it lasts longer";
      EXPECT_LE(left(":token"), token_before) << "it lasts longer";
    }
  }
}

// A release frees first: whom it cannot wake asks by itself.
TEST_F(DeniedTest, AReleaseThatErrsHasFreedItAllOrNothing) {
  int errors = 0, free = 0;
  for (const std::string& command : commands()) {
    SCOPED_TRACE(command + " is denied");
    next_mutex();
    hold(*store, "a~1");
    const Hints hints(*other, mutex);
    ASSERT_TRUE(hints.awaits_live());
    take(*other, mutex, "b~1");
    const std::string before = values();
    const std::string said = refused(command, [&] { release(*store, mutex, "a~1"); });
    const bool is_free = observe(*other, mutex).is_free();
    EXPECT_TRUE(said == "none" || said.find("ACL SETUSER") != said.npos) << said;
    if (is_free) {
      EXPECT_EQ(admin()({"EXISTS", its(), its(":token"), its(":lease")}), "0");
    } else {
      EXPECT_NE(said, "none");
      EXPECT_EQ(values(), before);
    }
    errors += said != "none" ? 1 : 0;
    free += is_free ? 1 : 0;
  }
  EXPECT_GE(errors, 4) << "of get, del, publish and zpopmin";
  EXPECT_GT(free, errors);
}

TEST_F(DeniedTest, EveryCommandOfATakeIsNeededAndMissed) {
  for (const char* command : {"time", "set", "publish"}) {
    next_mutex();
    EXPECT_NE(refused(command, [&] { hold(*store, "a~1"); }), "none") << command;
  }
  for (const char* command : {"zrem", "mget", "pttl", "zadd", "pexpire", "zrandmember", "zscore"}) {
    next_mutex();
    listen();
    hold(*other, "b~1");
    admin()({"ZADD", its(":contender"), "1", "dead"});
    EXPECT_NE(refused(command, [&] { take(*store, mutex, "a~1"); }), "none") << command;
  }
}

TEST_F(DeniedTest, AKeyOfAnotherTypeIsAnErrorAndNothingIsTaken) {
  for (const char* suffix : {"", ":fence", ":contender"}) {
    SCOPED_TRACE(suffix);
    next_mutex();
    listen();
    hold(*other, "b~1");
    ASSERT_EQ(take(*store, mutex, "a~1").owner.id, "b~1");  // queued
    vanish();
    admin()({"DEL", its(suffix)});
    admin()({"SADD", its(suffix), "of somebody else"});
    EXPECT_THAT(error_of([&] { hold(*store, "a~1"); }), HasSubstr("not ours"));
    EXPECT_EQ(admin()({"SMEMBERS", its(suffix)}), "of somebody else");
    const std::string lease = *suffix == '\0' ? "set" : "none";
    EXPECT_EQ(admin()({"TYPE", its()}), lease);
    EXPECT_EQ(admin()({"EXISTS", its(":token"), its(":lease")}), "0");
  }
}

TEST_F(UserTest, WithoutInfoAndScriptLoadItWorksAndSaysWhatItCannotKnow) {
  std::vector<std::string> rules = contender;
  rules.insert(rules.end(), {"-info", "-script"});
  make_user(rules);
  admin()({"SCRIPT", "FLUSH"});
  const auto store = open_as_user();
  EXPECT_EQ(take(*store, m, "a~1").owner.id, "a~1");
  EXPECT_EQ(log.count("+info"), 1u) << log.all();
}

// Nothing counts that replicas may not be asked for.
TEST_F(UserTest, WithoutTheRightToWaitNothingCountsAndATakeIsGivenBack) {
  std::vector<std::string> rules = contender;
  rules.push_back("-wait");
  make_user(rules);
  const auto store = open_alone(with_user() + "&replicas=1", log.sink());
  const auto owner = open();
  const Token token = take(*owner, m + ".held", "a~1").owner.token;
  const std::function<void()> calls[] = {[&] { take(*store, m, "a~1"); },
                                         [&] { renew(*store, m + ".held", "a~1", token); }};
  for (const auto& call : calls) {
    const std::string said = error_of(call);
    EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kDenied, "").code().message()));
    EXPECT_THAT(said, HasSubstr("'wait'"));
    EXPECT_THAT(said, HasSubstr("ACL SETUSER"));
  }
  EXPECT_EQ(admin()({"EXISTS", key(), key(":token"), key(":lease")}), "0") << "given back";
  EXPECT_EQ(observe(*owner, m + ".held").owner.token, token);
}

// It polls, says so once, and does not come back again and again without a pause.
TEST_F(UserTest, WithoutTheRightToSubscribeWaitersPoll) {
  std::vector<std::string> rules = contender;
  rules.push_back("-subscribe");
  make_user(rules);
  const auto owner = open();
  take(*owner, m, "a~1", 0, 120s, 60s);
  const LocalTime began = BootClock::now();
  const Client client(open_as_user(), {});
  Contender waiter(client, m, lease(120s, 60s));
  ASSERT_TRUE(eventually([&] { return log.count("waiters poll until this is over") > 0; }));
  EXPECT_EQ(log.count("'subscribe'"), 1U) << log.all();
  EXPECT_EQ(log.count("ACL SETUSER"), 1U) << log.all();
  EXPECT_EQ(waiter.acquired(), 0);
  std::this_thread::sleep_for(1s);  // for all the times that it would come back
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }));
  EXPECT_EQ(log.count("waiters poll"), 1U) << log.all();
  // Pauses of 25, 50, 100, 200, 400 ms, and then of a second, at least.
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(BootClock::now() - began);
  const std::string denials = admin()({"ACL", "LOG"});
  const std::size_t its = denials.find("|object|subscribe|username|" + user);
  ASSERT_NE(its, denials.npos) << denials;
  EXPECT_LE(std::stoll(denials.substr(denials.rfind("count|", its) + 6)), 7 + seconds.count());
}

TEST_F(UserTest, AWrongPasswordIsDeniedAndNeverRepeated) {
  make_user(contender);
  const auto store = open_alone(with_user("wrong-canary"), log.sink());
  const std::string said = error_of([&] { take(*store, m, "a~1"); });
  EXPECT_THAT(said, HasSubstr("password is wrong"));
  EXPECT_EQ(said.find("canary"), said.npos) << said;
  const Hints hints(*store, m);
  EXPECT_TRUE(eventually([&] { return log.count("password is wrong") > 0; }));
  EXPECT_EQ(log.count("canary"), 0u);
}

}  // namespace
}  // namespace simba::redis
