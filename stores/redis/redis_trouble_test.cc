#include <thread>

#include "stores/redis/redis_fixture.h"
#include "testing/servers/relay.h"

// What goes wrong between a client and a server that lives: each with an error a person can act on.
namespace simba::redis {
namespace {

TEST_F(RedisTest, AConnectionThatIsKilledAtRestCostsNoCall) {
  const std::string name = "killed" + m;
  const auto store = open("client-name=" + name);
  const Token token = take(*store, m, "a~1").owner.token;
  for (int i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(kill_client(name, "normal"));
    std::this_thread::sleep_for(kPastRest);
    ASSERT_EQ(error_of([&] { renew(*store, m, "a~1", token); }), "none");
  }
}

// Nobody has read the answer to its farewell, and behind that stands the end.
TEST_F(RedisTest, NorDoesOneThatIsKilledAfterAWaiterHasLeft) {
  const std::string name = "killed" + m;
  const auto store = open("client-name=" + name), owner = open();
  for (int i = 0; i < 5; ++i) {
    const std::string mutex = m + '.' + std::to_string(i),
                      queue = "simba:{" + mutex + "}:contender";
    take(*owner, mutex, "a~1");
    {
      const Hints hints(*store, mutex);
      ASSERT_TRUE(hints.awaits_live());
      ASSERT_EQ(take(*store, mutex, "b~1").owner.id, "a~1");
      ASSERT_EQ(admin()({"ZCARD", queue}), "1");
    }
    ASSERT_TRUE(eventually([&] { return admin()({"ZCARD", queue}) == "0"; }));
    ASSERT_NO_FATAL_FAILURE(kill_client(name, "normal"));
    std::this_thread::sleep_for(kPastRest);
    ASSERT_EQ(error_of([&] { EXPECT_EQ(observe(*store, mutex).owner.id, "a~1"); }), "none");
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
  const auto store = open_alone(through), witness = open();
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      const std::string mutex = m + '.' + std::to_string(i), name = "t" + std::to_string(i) + '~';
      for (int round = 0; !stop; ++round) {
        const std::string id = name + std::to_string(round);
        try {
          const Observation seen = take(*store, mutex, id, 0, 20s, 10s, BootClock::now() + 2s);
          // An answer that belongs to another question would show here. That of a grant names
          // nobody, but its token is no other's.
          if (seen.owner.is_owner(id)) {
            const MutexOwner owner = observe(*witness, mutex).owner;
            ++(owner.is_owner(id) && owner.token == seen.owner.token ? good : wrong);
          } else if (!seen.owner.id.empty() && !seen.owner.id.starts_with(name)) {
            ++wrong;
          }
          for (int back = 0; back <= round; ++back) {
            release(*store, mutex, name + std::to_string(round - back));
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
