#include <mongoc/mongoc.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "simba/lock_manager.h"
#include "stores/mongodb/mongodb_fixture.h"

// The article's API on the article's server.
namespace simba::mongodb {
namespace {

// A pool of the user that counts the writes that go out through it.
class CountingPool {
 public:
  explicit CountingPool(const std::string& url)
      : uri_(mongoc_uri_new(url.c_str())), pool_(mongoc_client_pool_new(uri_)) {
    mongoc_apm_callbacks_t* callbacks = mongoc_apm_callbacks_new();
    mongoc_apm_set_command_started_cb(callbacks, [](const mongoc_apm_command_started_t* event) {
      const char* name = mongoc_apm_command_started_get_command_name(event);
      const bool writes =
          std::strcmp(name, "update") == 0 || std::strcmp(name, "findAndModify") == 0;
      if (writes) ++*static_cast<std::atomic<int>*>(mongoc_apm_command_started_get_context(event));
    });
    mongoc_client_pool_set_apm_callbacks(pool_, callbacks, &writes_);
    mongoc_apm_callbacks_destroy(callbacks);
  }
  CountingPool(const CountingPool&) = delete;
  CountingPool& operator=(const CountingPool&) = delete;
  ~CountingPool() {
    mongoc_client_pool_destroy(pool_);
    mongoc_uri_destroy(uri_);
  }
  mongoc_client_pool_t* get() const { return pool_; }
  int writes() const { return writes_; }

 private:
  std::atomic<int> writes_{0};
  mongoc_uri_t* uri_;
  mongoc_client_pool_t* pool_;
};

using ::testing::HasSubstr;

class MongodbLockManagerTest : public MongodbTest {
 protected:
  static TemporalAlignmentStrategy brisk() {
    TemporalAlignmentStrategy strategy;
    strategy.lock_ttl = 20s;
    strategy.beat_interval = 200ms;
    return strategy;
  }
  // Renews nothing while a case lasts.
  static TemporalAlignmentStrategy slow() {
    TemporalAlignmentStrategy strategy;
    strategy.lock_ttl = 90s;
    strategy.beat_interval = 60s;
    return strategy;
  }
  // A client whose calls to the store are counted.
  static Client counted(std::shared_ptr<Store> store, std::atomic<int>& calls) {
    ClientOptions heard;
    heard.on_event = [&calls](const Event& event) {
      if (event.kind == Event::Kind::kCalled) ++calls;
    };
    return Client(std::move(store), heard);
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

TEST_F(MongodbLockManagerTest, LockingAgainPutsOffTheEndAndKeepsTheToken) {
  const auto store = open();
  const Client client(store);
  LockManager::Lock lock = LockManager::of(client, slow()).create_lock("L1");
  lock.lock();
  const Observation first = observe(*store, "L1");
  ASSERT_TRUE(eventually([&] { return observe(*store, "L1").now > first.now; }));
  EXPECT_EQ(observe(*store, "L1").owner.transition_at, first.owner.transition_at);
  EXPECT_TRUE(lock.try_lock());
  const Observation again = observe(*store, "L1");
  EXPECT_GT(again.owner.transition_at, first.owner.transition_at);
  EXPECT_EQ(again.owner.id, first.owner.id);
  EXPECT_EQ(again.owner.token, first.owner.token);
  EXPECT_EQ(lock.token(), first.owner.token);
  lock.unlock();
  EXPECT_TRUE(observe(*store, "L1").is_free()) << "one is enough";
}

TEST_F(MongodbLockManagerTest, AWaitThatIsInterruptedLeavesNothingBehind) {
  const auto store = open();
  take(*store, "L1", "other~1");
  std::atomic<int> calls{0};
  const Client client = counted(store, calls);
  LockManager manager = LockManager::of(client);
  std::stop_source stop;
  std::atomic<int> answer{-1};
  std::jthread waiter([&] { answer = manager.create_lock("L1").lock(stop.get_token()) ? 1 : 0; });
  ASSERT_TRUE(eventually([&] { return calls > 0; }));
  EXPECT_EQ(answer, -1);
  stop.request_stop();
  EXPECT_TRUE(eventually([&] { return answer == 0; }));
  EXPECT_EQ(observe(*store, "L1").owner.id, "other~1");
  release(*store, "L1", "other~1");
  LockManager::Lock lock = manager.create_lock("L1");
  EXPECT_TRUE(lock.lock(std::stop_token{}));
}

// As Java's clean-up may do, or an operator.
TEST_F(MongodbLockManagerTest, ATermWhoseDocumentWasDeletedEndsAndItsCallerHearsOfIt) {
  const auto store = open();
  const Client client(store);
  LockManager::Lock lock = LockManager::of(client, brisk()).create_lock("L1");
  lock.lock();
  const Term term = lock.term();
  command(R"({"delete": "$C", "deletes": [{"q": {"_id": "L1"}, "limit": 1}]})");
  EXPECT_TRUE(eventually([&] { return term.lost().stop_requested(); }));
  EXPECT_FALSE(lock.is_owner());
  EXPECT_THAT(error_of([&] { lock.lock(); }), HasSubstr("'L1' was lost"));
  lock.lock();
  EXPECT_GT(lock.token(), term.token());
  EXPECT_EQ(observe(*store, "L1").owner.id, lock.term().wire_id());
}

TEST_F(MongodbLockManagerTest, WhereNobodyIsWokenAWaiterAsksWithinTheLongestDelay) {
  constexpr auto kSlack = 2s;  // for a busy machine
  servers::MongodbSettings settings;
  settings.kind = servers::MongodbSettings::Kind::kAlone;
  std::unique_ptr<servers::MongodbServer> alone;
  try {
    servers::need_mongodb();
    alone = std::make_unique<servers::MongodbServer>(settings);
    alone->start();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  TemporalAlignmentStrategy strategy = slow();
  strategy.max_delay = 300ms;
  const Client client(open_mongodb(mongodb_options(alone->url())));
  std::atomic<int> calls{0};
  const Client other =
      counted(open_mongodb(mongodb_options(alone->url({}, "appName=other"))), calls);
  LockManager::Lock held = LockManager::of(client, strategy).create_lock("L1");
  held.lock();
  std::atomic<bool> has_it{false};
  std::jthread waiter([&] {
    LockManager::Lock lock = LockManager::of(other, strategy).create_lock("L1");
    lock.lock();
    has_it = true;
  });
  ASSERT_TRUE(eventually([&] { return calls > 10; })) << "its pauses have grown to the longest";
  const LocalTime began = BootClock::now();
  held.unlock();
  EXPECT_TRUE(eventually([&] { return has_it.load(); }));
  EXPECT_LT(BootClock::now() - began, strategy.max_delay + strategy.max_jitter + kSlack);
}

TEST_F(MongodbLockManagerTest, APoolOfTheUserHasOneManager) {
  const CountingPool pool(server());
  MongodbOptions own = options();
  own.pool = pool.get();
  const Client first(open_mongodb(own)), second(open_mongodb(own)), apart(open());
  const LockManager manager = LockManager::of(first);
  EXPECT_THAT(error_of([&] { LockManager::of(second); }), HasSubstr("has a lock manager already"));
  LockManager::of(apart);
}

TEST_F(MongodbLockManagerTest, AThousandLocksTakenOneByOneAreRenewedByAHandfulOfStatements) {
  constexpr std::size_t kLocks = 1'000, kRounds = 2;
  const CountingPool pool(server());
  std::atomic<std::size_t> renewed{0};
  std::weak_ptr<Store> store;
  {
    MongodbOptions own = options();
    own.pool = pool.get();
    auto opened = open_mongodb(own);
    store = opened;
    const Client client(std::move(opened));
    TemporalAlignmentStrategy strategy;
    strategy.lock_ttl = 60s;
    LockManager manager = LockManager::of(client, strategy);
    std::vector<LockManager::Lock> locks;
    for (std::size_t i = 0; i < kLocks; ++i) {
      locks.push_back(manager.create_lock("order-" + std::to_string(i)));
      locks.back().lock();
    }
    manager.on_beat([&](const Beat& beat) { renewed += beat.renewed; });
    ASSERT_TRUE(eventually([&] { return renewed > 0; }));
    renewed = 0;
    const int before = pool.writes();
    EXPECT_TRUE(eventually([&] { return renewed >= kRounds * kLocks; }));
    EXPECT_LE(pool.writes() - before, 16) << "four meetings in each of up to three periods";
  }
  EXPECT_TRUE(eventually([&] { return store.expired(); })) << "it still uses the pool";
}

}  // namespace
}  // namespace simba::mongodb
