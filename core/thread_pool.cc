#include "core/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/fork.h"

namespace simba::core {
namespace {

constexpr std::chrono::seconds kIdleTime{10};
thread_local const void* this_threads_pool = nullptr;

// These have left, or are about to: nothing is waited for but the end of the thread itself.
void join_all(std::vector<std::thread> threads) {
  for (std::thread& each : threads) {
    if (each.get_id() == std::this_thread::get_id()) {
      each.detach();  // in a destructor of something thread_local
    } else {
      each.join();
    }
  }
}

}  // namespace

struct ThreadPool::State {
  State(std::string its_name, std::size_t at_most, AtTheEnd its_end)
      : name(std::move(its_name)), most(at_most), at_the_end(its_end) {}
  const std::string name;
  const std::size_t most;
  const AtTheEnd at_the_end;
  std::mutex guard;
  std::condition_variable work, left;
  // Guarded by guard:
  std::deque<std::function<void()>> tasks;
  std::size_t threads = 0;
  std::size_t idle = 0;       // of those who wait; nobody has called them
  std::size_t called = 0;     // of those who wait
  std::size_t beginning = 0;  // were made, and have not come to the tasks yet
  std::size_t coming() const { return called + beginning; }
  bool closed = false;
  std::map<std::thread::id, std::thread> crew;
  std::vector<std::thread> left_behind;  // who left, for the next one to join
};

std::thread quiet_thread(const std::string& name, std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread([name, run = std::move(run)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      run();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

ThreadPool::ThreadPool(std::string name, std::size_t most, AtTheEnd at_the_end)
    : state_(std::make_shared<State>(std::move(name), most, at_the_end)), process_(fork_epoch()) {}

ThreadPool::~ThreadPool() { close(); }

void ThreadPool::open() {
  const std::lock_guard lock(state_->guard);
  spawn(state_);
}

void ThreadPool::submit(std::function<void()> task) {
  const std::lock_guard lock(state_->guard);
  if (state_->closed) return;
  state_->tasks.push_back(std::move(task));
  if (state_->coming() == 0) call_threads(state_, 1);
}

// Needs the guard. Who submits a task calls one thread if none is coming; who takes a task calls up
// to two for those that are left. So a hundred quick ones at once take a few threads, and nobody
// waits until a hundred are made; a hundred that last have theirs after a few generations.
void ThreadPool::call_threads(const std::shared_ptr<State>& state, int most) {
  const std::size_t enough = std::min(state->tasks.size(), 1 + state->threads / 2);
  for (; most > 0 && state->coming() < enough; --most) {
    if (state->idle > 0) {
      --state->idle;
      ++state->called;
      state->work.notify_one();
    } else if (state->threads < state->most) {
      try {
        spawn(state);
      } catch (const std::system_error&) {
        return;  // the system gives no more threads: one that is there will come to it
      }
    }
  }
}

// Needs the guard, which the new thread waits for: it is in the crew before it does anything.
void ThreadPool::spawn(const std::shared_ptr<State>& state) {
  std::thread thread = quiet_thread(state->name, [state] { work(state); });
  state->crew.emplace(thread.get_id(), std::move(thread));
  ++state->threads;
  ++state->beginning;
}

void ThreadPool::work(const std::shared_ptr<State>& state) {
  this_threads_pool = state.get();
  std::unique_lock lock(state->guard);
  --state->beginning;
  while (!state->closed || !state->tasks.empty()) {
    if (state->tasks.empty()) {
      ++state->idle;
      // Whoever wakes is through waiting, whyever it woke: so as many come as were called.
      const bool tired = state->work.wait_for(lock, kIdleTime) == std::cv_status::timeout;
      --(state->called > 0 ? state->called : state->idle);
      if (tired && state->tasks.empty() && state->threads > 1) break;
      continue;
    }
    std::function<void()> task = std::move(state->tasks.front());
    state->tasks.pop_front();
    call_threads(state, 2);
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  this_threads_pool = nullptr;  // what is thread_local here may still come to close()
  --state->threads;
  std::vector<std::thread> earlier;
  if (const auto me = state->crew.find(std::this_thread::get_id()); me != state->crew.end()) {
    earlier.swap(state->left_behind);
    state->left_behind.push_back(std::move(me->second));
    state->crew.erase(me);
  }
  state->left.notify_all();
  lock.unlock();
  join_all(std::move(earlier));
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
  if (state_->at_the_end == AtTheEnd::kDropsTasks) dropped.swap(state_->tasks);
  state_->work.notify_all();
  std::size_t self = 0;
  if (this_threads_pool == state_.get()) {
    self = 1;
    if (const auto me = state_->crew.find(std::this_thread::get_id()); me != state_->crew.end()) {
      me->second.detach();
      state_->crew.erase(me);
    }
  }
  state_->left.wait(lock, [&] { return state_->threads <= self; });
  std::vector<std::thread> gone = std::move(state_->left_behind);
  state_->left_behind.clear();
  const std::deque<std::function<void()>> nobody_elses = std::exchange(state_->tasks, {});
  lock.unlock();
  for (const auto& task : nobody_elses) task();
  join_all(std::move(gone));
}

}  // namespace simba::core
