#include "core/thread_pool.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/fork.h"

namespace simba::core {
namespace {

constexpr std::chrono::seconds kIdleTime{10};
thread_local const void* this_threads_pool = nullptr;

}  // namespace

struct ThreadPool::State {
  State(std::string its_name, std::size_t at_most) : name(std::move(its_name)), most(at_most) {}
  const std::string name;
  const std::size_t most;
  std::mutex guard;
  std::condition_variable work, left;
  std::deque<std::function<void()>> tasks;
  std::size_t threads = 0;
  std::size_t idle = 0;
  bool closed = false;
};

void start_quiet_thread(const std::string& name, std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([name, run = std::move(run)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      run();
    }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::ThreadPool(std::string name, std::size_t most)
    : state_(std::make_shared<State>(std::move(name), most)), process_(fork_epoch()) {}

ThreadPool::~ThreadPool() { close(); }

void ThreadPool::open() {
  spawn(state_);
  const std::lock_guard lock(state_->guard);
  ++state_->threads;
}

void ThreadPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->guard);
    if (state_->closed) return;
    state_->tasks.push_back(std::move(task));
    if (state_->idle >= state_->tasks.size() || state_->threads >= state_->most) {
      state_->work.notify_one();
      return;
    }
    ++state_->threads;
  }
  try {
    spawn(state_);
  } catch (const std::system_error&) {
    // The system gives no more threads: one that is there will come to it.
    const std::lock_guard lock(state_->guard);
    --state_->threads;
    state_->work.notify_one();
  }
}

void ThreadPool::spawn(const std::shared_ptr<State>& state) {
  const std::string& name = state->name;
  start_quiet_thread(name, [state] { work(state); });
}

void ThreadPool::work(const std::shared_ptr<State>& state) {
  this_threads_pool = state.get();
  std::unique_lock lock(state->guard);
  while (!state->closed) {
    if (state->tasks.empty()) {
      ++state->idle;
      const bool called = state->work.wait_for(
          lock, kIdleTime, [&] { return state->closed || !state->tasks.empty(); });
      --state->idle;
      if (!called && state->threads > 1) break;
      continue;
    }
    std::function<void()> task = std::move(state->tasks.front());
    state->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  --state->threads;
  state->left.notify_all();
}

void ThreadPool::close() {
  if (fork_epoch() != process_) {
    // The threads stayed in the parent, and one of them may have held the lock: nothing to wait
    // for.
    leave_alone(std::move(state_));
    return;
  }
  std::deque<std::function<void()>> dropped;
  std::unique_lock lock(state_->guard);
  state_->closed = true;
  dropped.swap(state_->tasks);
  state_->work.notify_all();
  const std::size_t self = this_threads_pool == state_.get() ? 1 : 0;
  state_->left.wait(lock, [&] { return state_->threads <= self; });
  lock.unlock();
}

}  // namespace simba::core
