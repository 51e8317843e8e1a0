#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace simba::core {

// Threads that appear when all others are busy and leave after a while without work; one stays, so
// that tasks go on where the system gives no more threads. No task runs inside submit().
//
// All signals are blocked in them: they belong to the program, not to us.
//
// Threads: any.
class ThreadPool {
 public:
  static constexpr std::size_t kMany = 1 << 20;
  // What close() does with tasks that have not begun.
  enum class AtTheEnd : std::uint8_t { kDropsTasks, kRunsTasks };

  // Tasks wait for one another once there are `most` threads.
  explicit ThreadPool(std::string name, std::size_t most = kMany,
                      AtTheEnd at_the_end = AtTheEnd::kDropsTasks);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Starts the one that stays. Throws std::system_error where it cannot be had.
  void open();
  // Dropped after close().
  void submit(std::function<void()> task);
  // Drops or runs what has not begun, and waits for what has; from a task of its own, for all but
  // that one.
  void close();

 private:
  struct State;
  static void call_threads(const std::shared_ptr<State>& state, int most);
  static void spawn(const std::shared_ptr<State>& state);
  static void work(const std::shared_ptr<State>& state);

  // Shared with its threads: one whose task closes this outlasts it by that task.
  std::shared_ptr<State> state_;
  const std::uint64_t process_;
};

// A thread with all signals blocked.
std::thread quiet_thread(const std::string& name, std::function<void()> run);

}  // namespace simba::core
