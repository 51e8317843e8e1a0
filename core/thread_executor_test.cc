#include "core/thread_executor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "testing/fork.h"

namespace {

std::atomic<bool> refuses_threads{false};
std::atomic<bool> holds_threads_up{false};
std::atomic<int> threads_made{0};

struct HeldUp {
  void* (*run)(void*);
  void* argument;
};

void* run_when_it_may(void* held_up) {
  holds_threads_up.wait(true);
  const std::unique_ptr<HeldUp> held(static_cast<HeldUp*>(held_up));
  return held->run(held->argument);
}

}  // namespace

// Stands before the system's, also for the standard library.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  if (refuses_threads) return EAGAIN;
  ++threads_made;
  if (holds_threads_up) {
    argument = new HeldUp{run, argument};
    run = run_when_it_may;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym() returns
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, run, argument);
}

namespace simba::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 40s;  // more than enough on any machine

// Waits for somebody else's thread.
template <typename T>
bool comes(std::future<T>& future) {
  return future.wait_for(kLong) == std::future_status::ready;
}

class RecordedCall : public StoreCall {
 public:
  explicit RecordedCall(std::promise<std::string>& done) : done_(done) {}
  LocalTime deadline() const override { return LocalTime::max(); }
  void send() override { steps_ += "send "; }
  void perform() override { steps_ += "perform "; }
  void lose() override { steps_ += "lose "; }
  void complete() override { done_.set_value(steps_ + "complete"); }

 private:
  std::promise<std::string>& done_;
  std::string steps_;
};

// Declared last in a test: no task touches its variables after they are gone.
class Quiet {
 public:
  explicit Quiet(Executor& executor) : executor_(executor) {}
  ~Quiet() { executor_.shut_down(); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  Executor& executor_;
};

class ThreadExecutorTest : public ::testing::Test {
 protected:
  std::shared_ptr<Executor> executor = make_thread_executor();
};

TEST_F(ThreadExecutorTest, TheAlarmComesAtItsTime) {
  std::promise<LocalTime> rang;
  const Quiet quiet{*executor};
  executor->start([&] { rang.set_value(executor->now()); });
  const LocalTime at = executor->now() + 20ms;
  executor->set_alarm(at);
  auto future = rang.get_future();
  ASSERT_TRUE(comes(future));
  EXPECT_GE(future.get(), at);
}

TEST_F(ThreadExecutorTest, AnAlarmInThePastComesAtOnce) {
  for (const LocalTime at : {executor->now() - 1h, LocalTime{}, LocalTime::min()}) {
    const auto fresh = make_thread_executor();
    std::promise<void> rang;
    fresh->start([&] { rang.set_value(); });
    fresh->set_alarm(at);
    auto future = rang.get_future();
    EXPECT_TRUE(comes(future));
    fresh->shut_down();
  }
}

TEST_F(ThreadExecutorTest, AnEarlierAlarmWins) {
  std::promise<void> rang;
  std::atomic<int> count{0};
  const Quiet quiet{*executor};
  executor->start([&] {
    if (++count == 1) rang.set_value();
  });
  executor->set_alarm(executor->now() + 1h);
  executor->set_alarm(executor->now() + 5ms);
  executor->set_alarm(executor->now() + 2h);
  auto future = rang.get_future();
  EXPECT_TRUE(comes(future));
}

TEST_F(ThreadExecutorTest, AnAlarmSetInsideTheAlarmComesToo) {
  std::promise<void> rang;
  std::atomic<int> count{0};
  const Quiet quiet{*executor};
  executor->start([&] {
    if (++count == 50) rang.set_value();
    if (count < 50) executor->set_alarm(executor->now());
  });
  executor->set_alarm(executor->now());
  auto future = rang.get_future();
  EXPECT_TRUE(comes(future));
}

TEST_F(ThreadExecutorTest, NoAlarmIsMissedHoweverManySetThem) {
  std::atomic<int> rung{0};
  const Quiet quiet{*executor};
  executor->start([&] { ++rung; });
  for (int round = 0; round < 200; ++round) {
    const int before = rung;
    std::thread other([&] { executor->set_alarm(executor->now() + 1ms); });
    executor->set_alarm(executor->now() + 1ms);
    other.join();
    const auto give_up = std::chrono::steady_clock::now() + kLong;
    while (rung == before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    ASSERT_GT(rung, before);
  }
}

TEST_F(ThreadExecutorTest, ACallGoesThroughItsStepsInBothLanes) {
  std::promise<std::string> kept, asked;
  const Quiet quiet{*executor};
  executor->call(Lane::kKeep, std::make_shared<RecordedCall>(kept));
  executor->call(Lane::kAsk, std::make_shared<RecordedCall>(asked));
  for (std::promise<std::string>* done : {&kept, &asked}) {
    auto future = done->get_future();
    ASSERT_TRUE(comes(future));
    EXPECT_EQ(future.get(), "send perform complete");
  }
}

TEST_F(ThreadExecutorTest, StopRequestsDoNotWaitForCallbacks) {
  std::promise<void> release, revoked;
  const Quiet quiet{*executor};
  auto released = release.get_future().share();
  for (int i = 0; i < 8; ++i) executor->callback([released] { released.wait(); });
  executor->revoke([&] { revoked.set_value(); });
  auto future = revoked.get_future();
  EXPECT_TRUE(comes(future));
  release.set_value();
}

TEST_F(ThreadExecutorTest, OneCallbackDoesNotWaitForAnother) {
  std::promise<void> release, ran;
  const Quiet quiet{*executor};
  auto released = release.get_future().share();
  for (int i = 0; i < 20; ++i) executor->callback([released] { released.wait(); });
  executor->callback([&] { ran.set_value(); });
  auto future = ran.get_future();
  EXPECT_TRUE(comes(future));
  release.set_value();
}

TEST_F(ThreadExecutorTest, AStopRequestMayWaitForAnotherStopRequest) {
  std::promise<void> second;
  auto seen = second.get_future().share();
  std::promise<void> first;
  const Quiet quiet{*executor};
  executor->revoke([&] {
    seen.wait();
    first.set_value();
  });
  executor->revoke([&] { second.set_value(); });
  auto future = first.get_future();
  EXPECT_TRUE(comes(future));
}

TEST_F(ThreadExecutorTest, ItsThreadsBlockAllSignalsAndHaveNames) {
  std::promise<std::pair<bool, std::string>> told;
  const Quiet quiet{*executor};
  executor->callback([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    told.set_value({sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1, name});
  });
  auto future = told.get_future();
  ASSERT_TRUE(comes(future));
  const auto [blocked, name] = future.get();
  EXPECT_TRUE(blocked);
  EXPECT_EQ(name, "simba-callback");
}

TEST_F(ThreadExecutorTest, TheCallersSignalMaskStaysAsItWas) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  executor->callback([] {});
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST_F(ThreadExecutorTest, ShutDownWaitsForWhatHasBegun) {
  std::promise<void> begun;
  std::atomic<bool> ended{false};
  const Quiet quiet{*executor};
  executor->callback([&] {
    begun.set_value();
    std::this_thread::sleep_for(20ms);  // the work of a user
    ended = true;
  });
  begun.get_future().wait();
  executor->shut_down();
  EXPECT_TRUE(ended);
}

TEST_F(ThreadExecutorTest, NothingStartsAfterShutDown) {
  executor->start([] { ADD_FAILURE() << "alarm"; });
  executor->shut_down();
  executor->set_alarm(executor->now());
  executor->callback([] { ADD_FAILURE() << "callback"; });
  executor->revoke([] { ADD_FAILURE() << "revoke"; });
  std::promise<std::string> done;
  executor->call(Lane::kAsk, std::make_shared<RecordedCall>(done));
  executor->shut_down();  // and again
  auto future = done.get_future();
  EXPECT_EQ(future.wait_for(0s), std::future_status::timeout);
}

TEST_F(ThreadExecutorTest, WhatHasNotBegunIsDroppedByShutDown) {
  const auto kept_by_the_task = std::make_shared<int>();
  executor->shut_down();
  executor->callback([kept_by_the_task] { ADD_FAILURE(); });
  EXPECT_EQ(kept_by_the_task.use_count(), 1);
}

// Somebody may wait for lost(), and nobody else would tell him.
class LateRevokeTest : public ThreadExecutorTest {
 protected:
  // One begins, and `then` goes on in it when another one stands in line behind it: no thread is
  // left for that.
  void begin(const std::function<void()>& then) {
    executor->start([] {});
    refuses_threads = true;
    executor->revoke([this, then] {
      begun_.set_value();
      gate_.get_future().wait();
      then();
      ended_.set_value();
    });
    auto begun = begun_.get_future();
    EXPECT_TRUE(comes(begun));
    executor->revoke([this] { is_made = true; });
    refuses_threads = false;
  }
  bool ends() {
    gate_.set_value();
    auto ended = ended_.get_future();
    return comes(ended);
  }
  // Nothing is taken any more.
  bool is_closed() {
    const auto probe = std::make_shared<int>();
    executor->revoke([probe] {});
    return probe.use_count() == 1;
  }
  std::atomic<bool> is_made{false};

 private:
  std::promise<void> gate_, begun_, ended_;
};

TEST_F(LateRevokeTest, AStopRequestIsMadeAlsoWhereShutDownComesFirst) {
  begin([] {});
  std::thread closing([&] { executor->shut_down(); });
  refuses_threads = true;
  while (!is_closed()) std::this_thread::yield();
  refuses_threads = false;
  EXPECT_TRUE(ends());
  closing.join();
  EXPECT_TRUE(is_made);
}

TEST_F(LateRevokeTest, AStopRequestIsMadeAlsoWhereAnotherOneShutsDown) {
  begin([&] { executor->shut_down(); });
  EXPECT_TRUE(ends());
  EXPECT_TRUE(is_made);
}

TEST_F(ThreadExecutorTest, ShutDownFromInsideATaskDoesNotWaitForItself) {
  const auto done = std::make_shared<std::promise<void>>();
  executor->callback([this, done] {
    executor->shut_down();
    done->set_value();
  });
  auto future = done->get_future();
  ASSERT_TRUE(comes(future));
}

TEST_F(ThreadExecutorTest, TheLastHandleMayGoInsideATask) {
  std::promise<void> go;
  const auto gone = std::make_shared<std::promise<void>>();
  auto may_go = go.get_future().share();
  auto own = make_thread_executor();
  own->callback([gone, may_go, own]() mutable {
    may_go.wait();
    own.reset();
    gone->set_value();
  });
  own.reset();
  go.set_value();
  auto future = gone->get_future();
  EXPECT_TRUE(comes(future));
}

TEST_F(ThreadExecutorTest, RandomNumbersDiffer) {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(executor->random());
  EXPECT_EQ(drawn.size(), 1000U);
}

TEST_F(ThreadExecutorTest, AForkedChildDoesNotHangAndRepeatsNoRandomNumber) {
  executor->start([] {});
  executor->set_alarm(executor->now() + 1h);
  std::promise<void> release, begun;
  auto released = release.get_future().share();
  const Quiet quiet{*executor};
  executor->callback([&] {
    begun.set_value();
    released.wait();
  });
  begun.get_future().wait();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = testing::fork_program();
  if (child == 0) {
    alarm(40);  // a child that hangs is killed
    const std::uint64_t random = executor->random();
    executor->shut_down();
    executor.reset();
    alarm(0);
    _exit(write(pipe_ends[1], &random, sizeof random) == sizeof random ? 0 : 1);
  }
  const std::uint64_t mine = executor->random();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::uint64_t its = 0;
  EXPECT_EQ(read(pipe_ends[0], &its, sizeof its), static_cast<ssize_t>(sizeof its));
  EXPECT_NE(its, mine);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  release.set_value();
}

TEST(ThreadPoolTest, ThreadsAreReused) {
  std::mutex guard;
  std::set<std::thread::id> threads;
  ThreadPool pool{"reused"};
  for (int i = 0; i < 50; ++i) {
    const auto done = std::make_shared<std::promise<void>>();
    pool.submit([&guard, &threads, done] {
      {
        const std::lock_guard lock(guard);
        threads.insert(std::this_thread::get_id());
      }
      done->set_value();
    });
    auto future = done->get_future();
    ASSERT_TRUE(comes(future));
  }
  const std::lock_guard lock(guard);
  EXPECT_LT(threads.size(), 45U);  // it may still be on its way back to the queue
}

TEST(ThreadPoolTest, WithoutNewThreadsATaskWaitsForOneThatIsThere) {
  std::promise<void> gate, first, second;
  std::atomic<std::thread::id> ran_on{};
  {
    ThreadPool pool{"scarce"};
    pool.open();
    refuses_threads = true;
    pool.submit([&] { first.set_value(), gate.get_future().wait(); });
    auto busy = first.get_future();
    EXPECT_TRUE(comes(busy));
    pool.submit([&] { ran_on = std::this_thread::get_id(), second.set_value(); });
    refuses_threads = false;
    EXPECT_EQ(ran_on.load(), std::thread::id()) << "it ran inside submit()";
    gate.set_value();
    auto done = second.get_future();
    ASSERT_TRUE(comes(done));
  }
  EXPECT_NE(ran_on.load(), std::this_thread::get_id());
}

TEST(ThreadPoolTest, EveryTaskRunsOnceHoweverManySubmit) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool{"many"};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) pool.submit([&] { ++ran; });
      });
    }
    threads.clear();
    const auto give_up = std::chrono::steady_clock::now() + kLong;
    while (ran < 2000 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  }
  EXPECT_EQ(ran, 2000);
}

// Hundreds of terms may end at once, and who ends them has no time to make a thread for each.
TEST(ThreadPoolTest, WhoSubmitsManyTasksAtOnceMakesOneThread) {
  constexpr int kTasks = 100;
  std::atomic<int> ran{0};
  {
    ThreadPool pool{"burst", ThreadPool::kMany, ThreadPool::AtTheEnd::kRunsTasks};
    holds_threads_up = true;
    const int before = threads_made;
    for (int i = 0; i < kTasks; ++i) pool.submit([&] { ++ran; });
    EXPECT_EQ(threads_made - before, 1);
    holds_threads_up = false;
    holds_threads_up.notify_all();
  }
  EXPECT_EQ(ran, kTasks);
}

TEST(ThreadPoolTest, EachOfManyTasksThatWaitForTheLastHasAThread) {
  constexpr int kTasks = 100;
  std::promise<void> last;
  auto seen = last.get_future().share();
  std::atomic<int> ran{0};
  {
    ThreadPool pool{"convoy", ThreadPool::kMany, ThreadPool::AtTheEnd::kRunsTasks};
    for (int i = 0; i < kTasks; ++i) {
      pool.submit([&ran, seen] {
        if (seen.wait_for(kLong) == std::future_status::ready) ++ran;
      });
    }
    pool.submit([&] { last.set_value(); });
  }
  EXPECT_EQ(ran, kTasks);
}

TEST(ThreadPoolTest, ATaskMaySubmitAnotherAndWaitForIt) {
  std::promise<void> inner;
  std::promise<void> outer;
  ThreadPool pool{"nested"};
  pool.submit([&] {
    pool.submit([&] { inner.set_value(); });
    inner.get_future().wait();
    outer.set_value();
  });
  auto future = outer.get_future();
  EXPECT_TRUE(comes(future));
}

}  // namespace
}  // namespace simba::core
