#include <iterator>
#include <sstream>
#include <thread>

#include "stores/redis/failure.h"
#include "stores/redis/redis_fixture.h"
#include "testing/servers/relay.h"

// What goes wrong between a client and a server that lives: each with an error a person can act on.
namespace simba::redis {
namespace {

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
    std::string out = url();
    return out.insert(out.find("//") + 2, user + ':' + password + '@');
  }
  std::shared_ptr<Store> open_as_user() { return open_alone(with_user(), log.sink()); }

  // What the store tells an administrator to run, without the name and the password.
  static std::vector<std::string> rules_of(const std::string& command) {
    std::istringstream words(command.substr(command.find(">PASSWORD ") + 10));
    return {std::istream_iterator<std::string>(words), {}};
  }

  const std::vector<std::string> contender = rules_of(contender_acl());
  const std::vector<std::string> observer{"%R~simba:*",  "&simba:*",    "+@connection", "+@read",
                                          "+evalsha_ro", "+eval_ro",    "+time",        "+info",
                                          "+subscribe",  "+unsubscribe"};
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

// Half of a take is worse than none.
TEST_F(UserTest, ADeniedCommandIsNamedAndNothingIsTaken) {
  for (const char* denied : {"publish", "set", "time"}) {
    std::vector<std::string> rules = contender;
    rules.push_back(std::string("-") + denied);
    make_user(rules);
    const auto store = open_as_user();
    const std::string said = error_of([&] { take(*store, m, "a~1"); });
    EXPECT_THAT(said, HasSubstr("ACL SETUSER")) << denied;
    EXPECT_THAT(said, ::testing::StartsWith(Error(Errc::kDenied, "").code().message())) << denied;
    EXPECT_EQ(admin()({"EXISTS", key(), key(":token"), key(":lease")}), "0") << denied;
    admin()({"ACL", "SETUSER", user, "reset"});
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

TEST_F(RedisTest, AKilledConnectionCostsOneCallAtMost) {
  const std::string name = "killed" + m;
  const auto store = open("client-name=" + name);
  const Token token = take(*store, m, "a~1").owner.token;
  for (int i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(kill_client(name, "normal"));
    // At rest it is noticed before anything is sent.
    ASSERT_TRUE(eventually([&] {
      const std::string said = error_of([&] { renew(*store, m, "a~1", token); });
      EXPECT_TRUE(said == "none" || said.find("unknown") != said.npos) << said;
      return said == "none";
    }));
  }
}

class RelayTest : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    const std::string all = url();
    const std::size_t colon = all.find(':', all.find("//"));
    relay = std::make_unique<servers::Relay>(
        static_cast<std::uint16_t>(std::stoul(all.substr(colon + 1))));
    through = "redis://127.0.0.1:" + std::to_string(relay->port()) + "?restart-guard=off";
  }
  std::unique_ptr<servers::Relay> relay;
  std::string through;
};

TEST_F(RelayTest, ASilentServerCostsACallItsDeadlineAndNoMore) {
  const auto store = open_alone(through);
  take(*store, m, "a~1");
  relay->stall();
  const LocalTime began = BootClock::now();
  const std::string said =
      error_of([&] { take(*store, m, "b~1", 0, 20s, 10s, BootClock::now() + 200ms); });
  EXPECT_THAT(said, HasSubstr("deadline"));
  EXPECT_LT(BootClock::now() - began, 5s);
  relay->mend();
  EXPECT_TRUE(eventually(
      [&] { return error_of([&] { observe(*store, m, BootClock::now() + 500ms); }) == "none"; }));
  EXPECT_EQ(observe(*store, m).owner.id, "a~1");
}

// An answer that comes after its caller has left belongs to nobody else.
TEST_F(RelayTest, ALateAnswerIsNotGivenToTheNextQuestion) {
  const auto store = open_alone(through);
  take(*store, m, "a~1");
  take(*store, m + ".other", "other~1");
  for (int round = 0; round < 5; ++round) {
    relay->stall();
    error_of([&] { observe(*store, m, BootClock::now() + 100ms); });
    std::string seen = "trouble";
    std::thread next(
        [&] { error_of([&] { seen = observe(*store, m + ".other", soon()).owner.id; }); });
    std::this_thread::sleep_for(50ms);  // so that it is on the way too
    relay->mend();
    next.join();
    EXPECT_TRUE(seen == "other~1" || seen == "trouble") << seen;
  }
}

TEST_F(RelayTest, AConnectionThatSaysNothingForASecondIsGivenUpForAll) {
  const auto store = open_alone(through);
  take(*store, m, "a~1");
  relay->stall();
  std::thread first(
      [&] { EXPECT_NE(error_of([&] { observe(*store, m, BootClock::now() + 1500ms); }), "none"); });
  // It has more patience than the one before it, and does not need it.
  const std::string said = error_of([&] { observe(*store, m, BootClock::now() + 60s); });
  EXPECT_THAT(said, HasSubstr("said nothing for a second"));
  first.join();
  relay->mend();
}

// Lost answers: whoever was on the way hears that nothing is known, and the next call goes on.
TEST_F(RelayTest, AnswersThatAreLostAreAmbiguousForAllWhoWereOnTheWay) {
  const auto store = open_alone(through);
  take(*store, m, "a~1");
  relay->mute();
  std::atomic<int> ambiguous{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string id = "t~" + std::to_string(i), mutex = m + '.' + std::to_string(i);
      const std::string said =
          error_of([&] { take(*store, mutex, id, 0, 20s, 10s, BootClock::now() + 1500ms); });
      if (said.find("unknown") != said.npos || said.find("deadline") != said.npos) ++ambiguous;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ambiguous, 8);
  relay->mend();
  for (int i = 0; i < 8; ++i) {
    const std::string id = "t~" + std::to_string(i), mutex = m + '.' + std::to_string(i);
    ASSERT_TRUE(eventually([&] {
      return error_of([&] { EXPECT_EQ(take(*store, mutex, id).owner.id, id); }) == "none";
    })) << i;
  }
}

TEST_F(RelayTest, ManyCallersSurviveAConnectionThatBreaksAgainAndAgain) {
  const auto store = open_alone(through);
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      const std::string mutex = m + '.' + std::to_string(i);
      for (int round = 0; !stop; ++round) {
        const std::string id = "t" + std::to_string(i) + '~' + std::to_string(round);
        try {
          const Observation seen = take(*store, mutex, id, 0, 20s, 10s, BootClock::now() + 2s);
          if (seen.owner.is_owner(id)) ++good;
          // An answer that belongs to another question would show here.
          if (!seen.owner.id.empty() && !seen.owner.id.starts_with("t" + std::to_string(i) + '~'))
            ++wrong;
          for (int back = 0; back <= round; ++back) {
            release(*store, mutex, "t" + std::to_string(i) + '~' + std::to_string(round - back));
            if (seen.owner.is_owner(id)) break;
          }
        } catch (const Error&) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (int round = 0; round < 8; ++round) {
    const int before = good;
    ASSERT_TRUE(eventually([&] { return good > before + 50; })) << "round " << round;
    relay->cut();
    std::this_thread::sleep_for(20ms);
    relay->mend();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace simba::redis
