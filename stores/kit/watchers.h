#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "simba/store.h"

namespace simba::kit {

// Who wants a hint about which mutex, within one store object.
//
// Threads: any. No lock of the store may be held in wake().
class Watchers {
 public:
  // The watch keeps `watchers` alive.
  static std::unique_ptr<Watch> add(std::shared_ptr<Watchers> watchers, std::string_view mutex,
                                    std::function<void()> wake);

  void wake(std::string_view mutex);
  void wake_all();

 private:
  class Ticket;
  struct Entry {
    explicit Entry(std::function<void()> hint) : wake(std::move(hint)) {}
    std::mutex calling;  // held while `wake` runs: the end of a watch waits for it
    std::function<void()> wake;
    bool ended = false;  // guarded by calling
  };
  static void call(Entry& entry);

  std::atomic<std::size_t> count_{0};  // so that nobody pays for hints nobody wants
  std::mutex guard_;
  std::multimap<std::string, std::shared_ptr<Entry>, std::less<>> entries_;  // guarded by guard_
};

}  // namespace simba::kit
