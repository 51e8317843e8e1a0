#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/kit/this_process.h"

namespace simba::kit {

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
