#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "core/thread_executor.h"
#include "core/thread_pool.h"

// A thread has ended when what is thread_local in it is gone: whoever waited for it may unload the
// code that it ran.
namespace simba::core {
namespace {

using namespace std::chrono_literals;

// Counts the threads that ended, each a while after its last task.
struct Trace {
  ~Trace() {
    if (!ended) return;
    std::this_thread::sleep_for(50ms);
    ++*ended;
  }
  std::shared_ptr<std::atomic<int>> ended;
};
thread_local Trace trace;

TEST(ThreadEndTest, APoolIsClosedWhenItsThreadsHaveEnded) {
  const auto ended = std::make_shared<std::atomic<int>>(0);
  std::promise<void> all_here;
  const std::shared_future<void> go = all_here.get_future().share();
  std::atomic<int> here{0};
  ThreadPool pool{"ending"};
  pool.open();
  for (int i = 0; i < 5; ++i) {
    pool.submit([&, ended] {
      trace.ended = ended;
      if (++here == 5) all_here.set_value();
      go.wait();
    });
  }
  go.wait();
  pool.close();
  EXPECT_EQ(*ended, 5);
}

TEST(ThreadEndTest, AnExecutorIsShutDownWhenTheThreadOfItsAlarmHasEnded) {
  const auto ended = std::make_shared<std::atomic<int>>(0);
  std::promise<void> rang;
  const auto executor = make_thread_executor();
  executor->start([&, once = std::make_shared<std::once_flag>()] {
    trace.ended = ended;
    std::call_once(*once, [&] { rang.set_value(); });
  });
  executor->set_alarm(executor->now());
  rang.get_future().wait();
  executor->shut_down();
  EXPECT_EQ(*ended, 1);
}

}  // namespace
}  // namespace simba::core
