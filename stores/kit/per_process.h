#pragma once

#include <pthread.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

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
    Table& table = the_table();
    const std::lock_guard lock(table.guard);
    std::erase_if(table.alive, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<T>& slot = table.alive[std::to_string(getpid()) + '\n' + identity];
    std::shared_ptr<T> one = slot.lock();
    if (!one) slot = one = make();
    return one;
  }

 private:
  struct Table {
    Table() {
      // Nobody else holds the lock in a forked child.
      pthread_atfork([] { the_table().guard.lock(); }, [] { the_table().guard.unlock(); },
                     [] { the_table().guard.unlock(); });
    }
    std::mutex guard;
    std::map<std::string, std::weak_ptr<T>> alive;  // guarded by guard
  };
  // Never destroyed: a store in a static variable may go after this.
  static Table& the_table() {
    static auto* const table = new Table;
    return *table;
  }
};

}  // namespace simba::kit
