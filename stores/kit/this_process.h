#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace simba::kit {

// A process, told from those it was forked from: also where it has the same number, as the first
// one of each pid namespace has, or by chance.
//
// Threads: any.
class ThisProcess {
 public:
  ThisProcess() : forks_(forks_so_far()) {}
  bool is_still() const { return number_ == getpid() && forks_ == forks_so_far(); }

 private:
  // The handler may come twice: who finds none makes one, and waits for nobody who is about to.
  static unsigned forks_so_far() {
    if (!counts.load(std::memory_order_acquire)) {
      const auto count = [] { forks.fetch_add(1, std::memory_order_relaxed); };
      counts.store(pthread_atfork(nullptr, nullptr, count) == 0, std::memory_order_release);
    }
    return forks.load(std::memory_order_relaxed);
  }
  static constinit inline std::atomic<bool> counts{false};
  static constinit inline std::atomic<unsigned> forks{0};

  const pid_t number_ = getpid();
  const unsigned forks_;
};

}  // namespace simba::kit
