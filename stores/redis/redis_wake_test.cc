#include <thread>

#include "simba/locker.h"
#include "stores/redis/redis_fixture.h"
#include "stores/redis/scripts.h"

// Who is woken by a release, by how many commands, and what dead waiters leave behind.
namespace simba::redis {
namespace {

// How often the server has run a command, also in scripts.
std::int64_t runs(Admin& admin, const std::string& command) {
  const std::string all = admin.ask({"INFO", "commandstats"}).text;
  const std::string line = "cmdstat_" + command + ":calls=";
  const std::size_t at = all.find(line);
  return at == all.npos ? 0 : std::stoll(all.substr(at + line.size()));
}

// How often it has run scripts: takes, renewals, questions and releases of ours.
std::int64_t calls(Admin& admin) { return runs(admin, "evalsha") + runs(admin, "evalsha_ro"); }

// Once nobody has made one for a tenth of a second.
std::int64_t calls_at_rest(Admin& admin) {
  std::int64_t made = -1;
  EXPECT_TRUE(eventually([&] {
    const std::int64_t last = std::exchange(made, calls(admin));
    std::this_thread::sleep_for(100ms);
    return last == made;
  })) << "it does not settle";
  return made;
}

// A process that waits: it is refused, listens, and is refused again, now with a place.
class Waiter {
 public:
  Waiter(std::shared_ptr<Store> store, std::string mutex, std::string id)
      : store_(std::move(store)),
        mutex_(std::move(mutex)),
        id_(std::move(id)),
        hints_(*store_, mutex_) {}
  bool queue() {
    if (!hints_.awaits_live()) return false;
    heard_ = hints_.count();
    return !ask();
  }
  bool ask() { return take(*store_, mutex_, id_).owner.is_owner(id_); }
  int woken() const { return hints_.count() - heard_; }

 private:
  const std::shared_ptr<Store> store_;
  const std::string mutex_, id_;
  const Hints hints_;
  int heard_ = 0;
};

TEST_F(RedisTest, WhoWaitsAloneHearsOnItsOwnThread) {
  const auto owner = open(), waiting = open();
  std::atomic<std::thread::id> on;
  const auto watch = waiting->watch(m, {}, [&] { on = std::this_thread::get_id(); });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  watch->need_reader(false);
  const kit::StopSignal interrupt;
  EXPECT_TRUE(eventually([&] {
    take(*owner, m, "a~1");
    release(*owner, m, "a~1");
    return watch->listen(interrupt.descriptor(), BootClock::now() + 100ms) &&
           on.load() == std::this_thread::get_id();
  }));
  watch->need_reader(true);
  EXPECT_FALSE(watch->listen(interrupt.descriptor(), BootClock::now() + 100ms));
  on = std::thread::id{};
  take(*owner, m, "a~1");
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return on.load() != std::thread::id{}; })) << "the reader hears it";
  EXPECT_NE(on.load(), std::this_thread::get_id());
}

// The thread that listens looks again only after seconds, if at all, unless it is rung.
TEST_F(RedisTest, WhoWaitsForAnotherMutexIsHeardOfByTheConnectionThatListensAlready) {
  const auto store = open();
  const Hints first(*store, m);
  ASSERT_TRUE(first.awaits_live());
  const LocalTime began = BootClock::now();
  for (int i = 0; i < 8; ++i) {
    const Hints another(*store, m + '.' + std::to_string(i));
    ASSERT_TRUE(another.awaits_live()) << i;
  }
  EXPECT_LT(BootClock::now() - began, 20s) << "one after the other, at a look of its own each";
}

TEST_F(RedisTest, ARefusedProcessThatListensHasAPlaceInTheQueue) {
  const auto owner = open();
  take(*owner, m, "a~1");
  const auto other = open();
  take(*other, m, "b~1");
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "0") << "nobody listens: nobody can be woken";
  Waiter waiter(other, m, "b~1");
  ASSERT_TRUE(waiter.queue());
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "1");
  const std::string member = admin()({"ZRANGE", key(":contender"), "0", "0"});
  EXPECT_EQ(admin()({"PUBSUB", "NUMSUB", key(':' + member)}), key(':' + member) + "|1");
  EXPECT_GT(admin().ask({"PTTL", key(":contender")}).number, 59'000) << "it ends by itself";
}

TEST_F(RedisTest, AReleaseWakesTheFirstInTheQueue) {
  const auto owner = open();
  take(*owner, m, "a~1");
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(std::make_unique<Waiter>(open(), m, "w~" + std::to_string(i)));
    ASSERT_TRUE(waiters.back()->queue()) << i;
  }
  release(*owner, m, "a~1");
  ASSERT_TRUE(eventually([&] { return waiters[0]->woken() > 0; }));
  EXPECT_TRUE(waiters[0]->ask());
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "3");
}

// Processes that would ask when they are told: their commands are counted on a server of their own.
TEST_F(RedisTest, AReleaseIsToldToTheFirstOfTheQueueAndTheOthersStayQuiet) {
  servers::RedisServer server;
  server.start();
  Admin counter(server.url());
  const auto open_there = [&] { return open_alone(server.url("restart-guard=off")); };
  const auto owner = open_there();
  take(*owner, m, "a~1");
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Contender>> waiters;
  ContendOptions options = lease(60s, 30s);
  options.safety_poll = 300s;  // polls would be counted too
  for (std::int64_t i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(open_there(), ClientOptions{}));
    waiters.push_back(std::make_unique<Contender>(*clients.back(), m, options));
    ASSERT_TRUE(eventually([&] { return counter.ask({"ZCARD", key(":contender")}).number > i; }));
  }
  const std::string first = counter({"ZRANGE", key(":contender"), "0", "0"});
  Admin ear(server.url());
  ear.subscribe({key(':' + first)});
  const std::int64_t before = calls_at_rest(counter);
  const std::int64_t messages = runs(counter, "publish"), popped = runs(counter, "zpopmin");
  // The next owner is heard together with the release, as if the woken one had been fast.
  counter({"MULTI"});
  counter({"EVALSHA", release_script().hash, "4", key(), key(":token"), key(":lease"),
           key(":contender"), "a~1"});
  counter({"EVALSHA", acquire_script().hash, "4", key(), key(":fence"), key(":token"),
           key(":lease"), "b~1", "90000", "60000 30000 ", "0", "0"});
  counter({"EXEC"});
  EXPECT_EQ(ear.message(), "released@@a~1");
  // It asks, once, and is refused; none of the others does, for longer than any would have waited.
  ASSERT_TRUE(eventually([&] { return calls(counter) >= before + 3; })) << "the first did not ask";
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(calls(counter), before + 3) << "the release, the take, and the first of the queue";
  EXPECT_EQ(runs(counter, "zpopmin"), popped + 1);
  EXPECT_EQ(runs(counter, "publish"), messages + 3) << "two for the release, one for the take";
}

TEST_F(RedisTest, AProcessInTheQueueNeedNotAskOnceItHearsOfTheNextOwner) {
  const auto owner = open();
  take(*owner, m, "a~1");
  Waiter waiter(open(), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  for (int i = 0; i < 20; ++i) {
    // Heard together: nothing in between.
    admin()({"EVAL",
             "redis.call('publish', KEYS[1], 'released@@x') "
             "return redis.call('publish', KEYS[1], 'acquired@@y')",
             "1", key()});
  }
  std::this_thread::sleep_for(50ms);  // longer than it would have waited
  EXPECT_EQ(waiter.woken(), 0);
  admin()({"PUBLISH", key(), "released@@x"});
  EXPECT_TRUE(eventually([&] { return waiter.woken() > 0; })) << "nobody took it: it asks";
}

TEST_F(RedisTest, WhoIsDeadInTheQueueIsSkipped) {
  const auto owner = open();
  take(*owner, m, "a~1");
  Waiter waiter(open(), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  const std::string alive = admin()({"ZRANGE", key(":contender"), "0", "0"});
  for (int i = 0; i < 10; ++i) {
    admin()({"ZADD", key(":contender"), std::to_string(i), "dead" + std::to_string(i)});
  }
  Admin ear(url());
  ear({"SUBSCRIBE", key(':' + alive)});
  release(*owner, m, "a~1");
  EXPECT_EQ(ear.message(), "released@@a~1");
  EXPECT_TRUE(eventually([&] { return waiter.woken() > 0; }));
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "0") << "the dead are gone with it";
}

TEST_F(RedisTest, AReleaseSkipsAtMostSixteenOfTheDeadAndStillTellsEverybody) {
  const auto owner = open();
  take(*owner, m, "a~1");
  Waiter waiter(open(), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  for (int i = 0; i < 40; ++i) {
    admin()({"ZADD", key(":contender"), std::to_string(i), "dead" + std::to_string(i)});
  }
  release(*owner, m, "a~1");
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "25") << "16 of 41: it is bounded";
  EXPECT_TRUE(eventually([&] { return waiter.woken() > 0; })) << "by the broadcast";
}

TEST_F(RedisTest, TheDeadDoNotGatherInAQueueThatIsNeverServed) {
  const auto owner = open();
  take(*owner, m, "a~1");
  for (int i = 0; i < 200; ++i) {
    admin()({"ZADD", key(":contender"), std::to_string(i), "dead" + std::to_string(i)});
  }
  Waiter waiter(open(), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(waiter.ask());
  EXPECT_LT(admin().ask({"ZCARD", key(":contender")}).number, 20);
  EXPECT_NE(admin()({"ZRANGE", key(":contender"), "0", "-1"}).find('~'), std::string::npos)
      << "who listens stays";
}

// Whom nobody hears may have lost its connection a moment ago, and keeps its place for three
// leases.
TEST_F(RedisTest, WhoHasQueuedLatelyIsNotTakenForDead) {
  const auto owner = open();
  take(*owner, m, "a~1", 0, 20s, 10s);
  const std::int64_t now = std::stoll(admin()({"TIME"}));
  const auto place = [&](const std::string& who, std::int64_t age) {
    admin()({"ZADD", key(":contender"), std::to_string(now - age), who});
  };
  place("late", 60);
  place("dead", 91);
  Waiter waiter(open(), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  const auto keeps = [&](const std::string& who) {
    return admin()({"ZSCORE", key(":contender"), who}) != "nil";
  };
  EXPECT_TRUE(eventually([&] { return !waiter.ask() && !keeps("dead"); }));
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(waiter.ask());
  EXPECT_TRUE(keeps("late") || std::stoll(admin()({"TIME"})) - now > 29) << "the machine was busy";
  const std::int64_t lasts = admin().ask({"PTTL", key(":contender")}).number;
  EXPECT_GT(lasts, 0) << "the queue itself ends";
  EXPECT_LE(lasts, 90'000);
}

TEST_F(RedisTest, AWaiterThatLeavesTakesItsPlaceWithIt) {
  const auto owner = open();
  take(*owner, m, "a~1");
  const auto other = open();
  {
    Waiter waiter(other, m, "w~1");
    ASSERT_TRUE(waiter.queue());
  }
  EXPECT_TRUE(eventually([&] { return admin()({"ZCARD", key(":contender")}) == "0"; }));
}

TEST_F(RedisTest, AQueueThatWasDeletedIsJoinedAgainAtTheNextPoll) {
  const auto owner = open();
  take(*owner, m, "a~1");
  const auto other = open();
  Waiter waiter(other, m, "w~1");
  ASSERT_TRUE(waiter.queue());
  const std::string before = admin()({"ZRANGE", key(":contender"), "0", "0", "WITHSCORES"});
  admin()({"DEL", key(":contender")});  // as JVM Simba 3.2 and 3.3 do
  observe(*other, m);
  EXPECT_EQ(admin()({"ZRANGE", key(":contender"), "0", "0", "WITHSCORES"}), before);
  EXPECT_GT(admin().ask({"PTTL", key(":contender")}).number, 0);
  observe(*open(), m);
  EXPECT_EQ(admin()({"ZCARD", key(":contender")}), "1") << "who only looks has no place";
}

TEST_F(RedisTest, AMessageAloneChangesNothing) {
  const Client client(open(), {});
  Contender holder(client, m, lease(20s, 10s));
  ASSERT_TRUE(eventually([&] { return holder.is_owner(); }));
  const Client other(open(), {});
  Contender waiter(other, m, lease(20s, 10s));
  ASSERT_TRUE(eventually([&] { return waiter.is_running(); }));
  const std::string id = holder.wire_id();
  for (int i = 0; i < 50; ++i) {
    admin()({"PUBLISH", key(), "released@@" + id});
    admin()({"PUBLISH", key(), "acquired@@somebody"});
    admin()({"PUBLISH", key(), "nonsense"});
    admin()({"PUBLISH", key(), "acquired@@"});
  }
  EXPECT_TRUE(holder.is_in_ttl());
  EXPECT_FALSE(waiter.is_owner());
  EXPECT_EQ(holder.released(), 0);
  EXPECT_EQ(waiter.acquired(), 0);
}

TEST_F(RedisTest, ALostMessageCostsAtMostTheSafetyPoll) {
  const auto owner = open();
  take(*owner, m, "a~1", 0, 60s, 30s);
  ContendOptions options = lease(60s, 30s);
  options.safety_poll = 300ms;
  const Client client(open(), {});
  Contender waiter(client, m, options);
  ASSERT_TRUE(eventually([&] { return waiter.is_running(); }));
  // Gone without a word.
  admin()({"DEL", key(), key(":token"), key(":lease")});
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }));
}

// A release of ours: one script, and one for the process that is woken, however many wait.
TEST_F(RedisTest, TheCommandsOfAHandOverDoNotGrowWithThoseWhoWait) {
  constexpr int kWaiters = 100;
  // Alone on a server: its commands are counted.
  servers::RedisServer server;
  server.start();
  Admin counter(server.url());
  const Client first(open_alone(server.url("restart-guard=off")), {});
  const Client second(open_alone(server.url("restart-guard=off")), {});
  ContendOptions options = lease(60s, 30s);
  options.safety_poll = 30s;  // polls would be counted too
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(std::make_unique<Contender>(first, m, options));
  ASSERT_TRUE(eventually([&] { return all[0]->is_owner(); }));
  for (int i = 0; i < kWaiters; ++i) {
    all.push_back(std::make_unique<Contender>(i % 2 == 0 ? first : second, m, options));
  }
  for (const auto& each : all) ASSERT_TRUE(eventually([&] { return each->is_running(); }));
  ASSERT_TRUE(eventually([&] { return counter({"ZCARD", "simba:{" + m + "}:contender"}) == "2"; }));
  const std::int64_t before = calls_at_rest(counter);
  constexpr int kHandOvers = 20;
  const auto owner = [&]() -> Contender* {
    for (const auto& each : all) {
      if (each->is_owner()) return each.get();
    }
    return nullptr;
  };
  for (int i = 0; i < kHandOvers; ++i) {
    Contender* const last = owner();
    ASSERT_NE(last, nullptr);
    last->stop();
    ASSERT_TRUE(eventually([&] { return owner() != nullptr; })) << i;
    std::this_thread::sleep_for(30ms);  // for those who would ask late
  }
  const auto each = static_cast<double>(calls(counter) - before) / kHandOvers;
  RecordProperty("calls_per_hand_over", std::to_string(each));
  constexpr int kProcesses = 2;
  EXPECT_LE(each, 2 + kProcesses + 0.5) << "the release, the take, and one more for each process";
}

TEST_F(RedisTest, AConnectionThatListensIsReplacedWhenItIsKilled) {
  const std::string name = "killed" + m;
  const auto store = open("client-name=" + name);
  const auto owner = open();
  take(*owner, m, "a~1");
  Waiter waiter(store, m, "w~1");
  ASSERT_TRUE(waiter.queue());
  ASSERT_NO_FATAL_FAILURE(kill_client(name, "pubsub"));
  ASSERT_TRUE(eventually([&] { return waiter.woken() > 0; })) << "what was missed is asked for";
  EXPECT_GE(log.count("waiters poll until this is over"), 1u);
  ASSERT_TRUE(waiter.queue());
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return waiter.woken() > 0; }));
}

TEST_F(RedisTest, AQueueOfOurOwnIsNotThatOfJvmSimba) {
  const auto owner = open("queue=own");
  take(*owner, m, "a~1");
  Waiter waiter(open("queue=own"), m, "w~1");
  ASSERT_TRUE(waiter.queue());
  EXPECT_EQ(admin()({"EXISTS", key(":contender")}), "0");
  EXPECT_EQ(admin()({"ZCARD", key(":waiters")}), "1");
  release(*owner, m, "a~1");
  EXPECT_TRUE(eventually([&] { return waiter.woken() > 0; }));
}

TEST_F(RedisTest, AMutexThatNobodyWaitsForAnyMoreIsHeardOfNoMore) {
  const auto owner = open();
  take(*owner, m, "a~1");
  const auto other = open();
  std::string mine;
  const auto heard_by = [&](const std::string& channel) {
    return admin()({"PUBSUB", "NUMSUB", channel}).substr(channel.size() + 1);
  };
  {
    Waiter waiter(other, m, "w~1");
    ASSERT_TRUE(waiter.queue());
    mine = key(':' + admin()({"ZRANGE", key(":contender"), "0", "0"}));
    EXPECT_EQ(heard_by(key()), "1");
    EXPECT_EQ(heard_by(mine), "1");
  }
  // Not at once: who waits again soon need not subscribe again.
  EXPECT_TRUE(eventually([&] { return heard_by(key()) == "0" && heard_by(mine) == "0"; }));
}

TEST_F(RedisTest, AStoreThatIsGoneIsToldNothingAndItsNeighbourEverything) {
  Lines first, second;
  RedisOptions same = redis_options(url("client-name=pair" + m));
  same.log = first.sink();
  auto gone = open_redis(same);
  same.log = second.sink();
  const auto left = open_redis(same);
  const Hints hints(*left, m);
  ASSERT_TRUE(hints.awaits_live());
  gone.reset();
  ASSERT_NO_FATAL_FAILURE(kill_client("pair" + m, "pubsub"));
  EXPECT_TRUE(eventually([&] { return second.count("waiters poll until this is over") > 0; }));
  EXPECT_EQ(first.count("waiters poll"), 0U);
}

}  // namespace
}  // namespace simba::redis
