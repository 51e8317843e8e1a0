#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace simba::kit {

// A process, told from those it was forked from: also where it has the same number, as the first
// one of each pid namespace has, or by chance.
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

// What the stores of one process share, by a text that says what it is for: the one connection that
// listens to a server. It lives as long as somebody has it; a forked child makes its own.
//
// Threads: any.
template <class T>
class PerProcess {
 public:
  template <class Make>
  static std::shared_ptr<T> get(const std::string& identity, Make make) {
    Table& table = own_table();
    const std::lock_guard lock(table.guard);
    std::erase_if(table.alive, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<T>& slot = table.alive[identity];
    std::shared_ptr<T> one = slot.lock();
    if (!one) slot = one = make();
    return one;
  }

 private:
  struct Table {
    const ThisProcess process;
    std::mutex guard;
    std::map<std::string, std::weak_ptr<T>> alive;  // guarded by guard
  };
  // What a child inherits is left as it is: somebody may have held the lock at the fork. Nothing
  // here is made as a static variable is: a child of the moment in which the first thread makes it
  // would wait for that thread for ever.
  static Table& own_table() {
    Table* found = current.load(std::memory_order_acquire);
    while (!found || !found->process.is_still()) {
      auto made = std::make_unique<Table>();
      if (current.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
        return *made.release();
      }
    }
    return *found;
  }
  // Never destroyed: a store in a static variable may go after this.
  static constinit inline std::atomic<Table*> current{nullptr};
};

}  // namespace simba::kit
