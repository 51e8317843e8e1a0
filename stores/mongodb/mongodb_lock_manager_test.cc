#include <thread>

#include "simba/lock_manager.h"
#include "stores/mongodb/mongodb_fixture.h"

// The article's API on the article's server.
namespace simba::mongodb {
namespace {

using ::testing::HasSubstr;

class MongodbLockManagerTest : public MongodbTest {
 protected:
  static TemporalAlignmentStrategy brisk() {
    TemporalAlignmentStrategy strategy;
    strategy.lock_ttl = 20s;
    strategy.beat_interval = 200ms;
    return strategy;
  }
};

TEST_F(MongodbLockManagerTest, TheExampleOfTheArticle) {
  const Client client(open());
  LockManager manager = LockManager::of(client);
  LockManager::Lock lock = manager.create_lock("L1", 4s);
  ASSERT_TRUE(lock.try_lock_for(12s));
  EXPECT_THAT(document("L1"), HasSubstr(R"("ttlMs" : 4400)"));
  EXPECT_THAT(document("L1"), HasSubstr(R"("ownerId" : ")" + lock.term().wire_id()));
  lock.unlock();
  lock.unlock();
  EXPECT_TRUE(observe(*open(), "L1").is_free());
}

TEST_F(MongodbLockManagerTest, ManyThreadsOfManyClientsLoseNoUpdate) {
  constexpr int kClients = 3, kThreads = 3, kRounds = 15;
  int counter = 0;
  std::vector<std::thread> threads;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back(open("appName=c" + std::to_string(i)));
  for (int i = 0; i < kClients * kThreads; ++i) {
    threads.emplace_back([&, i] {
      LockManager::Lock lock =
          LockManager::of(clients[static_cast<std::size_t>(i % kClients)]).create_lock("counter");
      for (int round = 0; round < kRounds; ++round) {
        lock.lock();
        const int next = counter + 1;
        std::this_thread::yield();
        counter = next;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kClients * kThreads * kRounds);
}

TEST_F(MongodbLockManagerTest, TheHeartbeatRenewsMeasuresClearsAndGivesBack) {
  const auto store = open();
  const Claim dead{"dead", "x~1", 0, 0, 100ms, 50ms};
  const Token token = observed(contend(*store, dead)).owner.token;
  const Client client(store);
  LockManager manager = LockManager::of(client, brisk());
  std::atomic<int> renewed{0}, cleared{0}, released{0}, troubles{0};
  manager.on_beat([&](const Beat& beat) {
    renewed += static_cast<int>(beat.renewed);
    cleared += static_cast<int>(beat.cleared);
    released += static_cast<int>(beat.released);
    troubles += beat.trouble ? 1 : 0;
  });
  LockManager::Lock one = manager.create_lock("one"), two = manager.create_lock("two");
  one.lock();
  two.lock();
  std::thread([&] { manager.create_lock("three").lock(); }).join();
  LockManager::Lock left = manager.create_lock("left");
  std::thread([&] { left.lock(); }).join();
  EXPECT_TRUE(eventually([&] { return renewed >= 6 && cleared >= 1 && released >= 1; }))
      << renewed << " renewed, " << cleared << " cleared, " << released << " released";
  EXPECT_EQ(troubles, 0);
  EXPECT_EQ(observe(*store, "dead").owner.id, "");
  EXPECT_EQ(observe(*store, "dead").owner.token, token);
  EXPECT_TRUE(eventually([&] { return observe(*store, "left").is_free(); }));
  ASSERT_TRUE(manager.time_delta());
  EXPECT_LT(std::chrono::abs(*manager.time_delta()), 1min);
}

}  // namespace
}  // namespace simba::mongodb
