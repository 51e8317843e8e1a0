#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "simba/time.h"

namespace simba::kit {

// What a worker looks at to learn that it is no longer wanted.
//
// Threads: any.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void request() noexcept;
  bool is_requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  // Readable from the request on: for poll().
  int descriptor() const noexcept { return descriptor_; }
  // False: stop was requested meanwhile.
  bool pause(nanoseconds length) const noexcept;

 private:
  int descriptor_;
  std::atomic<bool> requested_{false};  // asked often, and then no system call
};

// A thread of ours: named, with all signals blocked. Its end is requested and waited for when this
// goes, but not for ever: a resolver may hang in a driver. Hence the task owns all it touches.
//
// Threads: one. In a forked child nothing happens: the thread stayed in the parent.
class Worker {
 public:
  using Task = std::function<void(const StopSignal& stop)>;

  // `name` has at most 15 characters. Throws Error (kUnreachable) where the system gives no thread.
  Worker(const std::string& name, Task task);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const StopSignal& stop() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Waits until one of `events` (as for poll()) holds for the descriptor. False: the deadline passed,
// or stop was requested.
bool wait_for(int descriptor, short events, LocalTime deadline,
              const StopSignal* stop = nullptr) noexcept;
// The same for another descriptor in place of the stop: it became readable.
bool wait_for(int descriptor, short events, LocalTime deadline, int interrupt) noexcept;

}  // namespace simba::kit
