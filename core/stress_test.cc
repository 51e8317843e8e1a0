#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "simba/contend_service.h"
#include "simba/locker.h"
#include "simba/memory.h"

// A hundred thousand lives of services, as short as they can be: started and stopped, stopped in a
// callback, destroyed in a callback. Then locks, and clients destroyed under running callbacks.
namespace simba {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;
constexpr int kRounds = 34'000;  // of each of the first three cases
constexpr int kFewer = 20'000;

bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    std::this_thread::yield();
  }
  return true;
}

// Counts the callbacks of one life: acquired and released in turns.
struct Count {
  std::atomic<int> acquired{0}, released{0};
};

class StressTest : public ::testing::Test {
 protected:
  // Each thread has a mutex of its own but for the last, which they share.
  static void on_threads(int rounds, const std::function<void(int thread, int round)>& life) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < rounds / kThreads && !::testing::Test::HasFailure(); ++round) {
          life(thread, round);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::string mutex(int thread, int round) const {
    return round % 8 == 7 ? "shared" : "m" + std::to_string(thread);
  }
  bool is_free(std::string_view name) {
    return std::get<Observation>(store->observe({&name, 1}, BootClock::now() + 60s).at(0))
        .is_free();
  }
  void expect_all_free() {
    EXPECT_TRUE(eventually([&] { return is_free("shared"); }));
    for (int thread = 0; thread < kThreads; ++thread) {
      EXPECT_TRUE(eventually([&] { return is_free("m" + std::to_string(thread)); }));
    }
  }

  // stop() and the destructor wait for callbacks as long as they have to.
  static ClientOptions patient() {
    ClientOptions options;
    options.contend.transition = 120s;
    options.contend.grace = 60s;
    return options;
  }

  const std::shared_ptr<Store> store = make_memory();
  const Client client{store, patient()};
};

TEST_F(StressTest, StartAndStop) {
  on_threads(kRounds, [&](int thread, int round) {
    Count count;
    MutexContendService service(client,
                                make_contender(mutex(thread, round),
                                               {[&](const MutexState&) { ++count.acquired; },
                                                [&](const MutexState&) { ++count.released; }},
                                               "c"));
    service.start();
    if (round % 2 == 0) std::this_thread::yield();
    service.stop();
    EXPECT_EQ(count.acquired, count.released);
    EXPECT_EQ(service.status(), Status::kInitial);
    EXPECT_FALSE(service.is_owner());
  });
  expect_all_free();
}

TEST_F(StressTest, StopInACallback) {
  on_threads(kRounds, [&](int thread, int) {
    Count count;
    std::unique_ptr<MutexContendService> service;
    service = std::make_unique<MutexContendService>(
        client, make_contender("m" + std::to_string(thread),
                               {[&](const MutexState&) {
                                  ++count.acquired;
                                  service->stop();
                                },
                                [&](const MutexState&) { ++count.released; }},
                               "c"));
    service->start();
    EXPECT_TRUE(eventually([&] { return service->status() == Status::kInitial; }));
    EXPECT_EQ(count.acquired, 1);
    EXPECT_EQ(count.released, 1);
  });
  expect_all_free();
}

TEST_F(StressTest, DestroyInACallback) {
  on_threads(kRounds, [&](int thread, int) {
    struct Life {
      std::unique_ptr<MutexContendService> service;
      Count count;
    };
    const auto life = std::make_shared<Life>();
    life->service = std::make_unique<MutexContendService>(
        client, make_contender("m" + std::to_string(thread),
                               {[life = life.get()](const MutexState&) {
                                  ++life->count.acquired;
                                  life->service.reset();
                                },
                                [life = life.get()](const MutexState&) { ++life->count.released; }},
                               "c"));
    life->service->start();
    EXPECT_TRUE(eventually([&] { return life->count.released == 1; }));
    EXPECT_EQ(life->count.acquired, 1);
    EXPECT_TRUE(eventually([&] { return is_free("m" + std::to_string(thread)); }));
  });
  expect_all_free();
}

TEST_F(StressTest, LockAndUnlock) {
  on_threads(kFewer, [&](int thread, int round) {
    SimbaLocker locker(client, mutex(thread, round));
    if (round % 3 == 0) {
      if (locker.try_lock()) locker.unlock();
    } else {
      locker.lock();
      EXPECT_TRUE(locker.is_owner());
    }
  });
  expect_all_free();
}

TEST_F(StressTest, TheClientIsDestroyedWhileCallbacksRun) {
  on_threads(kFewer, [&](int thread, int round) {
    const auto count = std::make_shared<Count>();
    auto own = std::make_unique<Client>(store, patient());
    auto service = std::make_unique<MutexContendService>(
        *own, make_contender(mutex(thread, round),
                             {[count](const MutexState&) { ++count->acquired; },
                              [count](const MutexState&) { ++count->released; }},
                             "c"));
    service->start();
    own.reset();
    if (round % 2 == 0) eventually([&] { return count->acquired > 0 || round % 8 == 7; });
    service.reset();
    EXPECT_EQ(count->acquired, count->released);
  });
  expect_all_free();
}

}  // namespace
}  // namespace simba
