#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "simba/store.h"
#include "stores/kit/watchers.h"
#include "stores/sqlite/bells.h"

namespace simba::sqlite {

// Who waits for which mutex, and the thread that hears the bells of other processes for them.
//
//   release here --------------------> wake of the same mutex, on the releasing thread
//   release in another process: bell -> inotify -> reader thread -> wakes of that bell's mutexes
//
// The thread starts with the first watch. Where one thread waits and nobody else needs a hint, it
// can listen instead, and the reader stands aside. Hints only: nothing of the database is read.
//
// Threads: any. In a forked child nothing here is touched.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // Where the bells hang; anew after the file was replaced.
  void bind(const std::filesystem::path& directory);
  // Null where no thread or descriptor is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);
  void wake(std::string_view mutex, unsigned bell);

 private:
  class BellWatch;
  struct Bell {
    const std::shared_ptr<kit::Watchers> watchers = std::make_shared<kit::Watchers>();
    std::size_t count = 0;           // guarded by mutex_; of watches
    int watch = -1;                  // guarded by mutex_; of inotify, -1: not heard
    std::atomic<bool> live = false;  // written under mutex_
  };

  bool start();                // under mutex_
  void arm(unsigned bell);     // under mutex_
  void listen(unsigned bell);  // under mutex_
  bool watch_waited();         // under mutex_; true: it is another file
  void disarm(unsigned bell);  // under mutex_
  void leave(BellWatch& watch);
  bool listen(int interrupt, LocalTime until);
  bool begin_to_listen();
  class Listening;
  void rely(BellWatch& watch, bool relies);
  void stand_aside(bool aside);  // under turns_; tells the reader
  void run();
  // Calls the wakes of the bells that rang.
  void hear();
  // The bells that rang, as bits.
  std::uint64_t read_events();
  std::uint64_t note_event(int watch, std::uint32_t mask);  // under mutex_

  const unsigned forks_;
  // Who hears the bells. Nobody touches a file under it: the engine takes it under its own lock.
  std::mutex turns_;
  std::size_t relying_ = 0;  // guarded by turns_; watches, on the reader
  bool listened_ = false;    // guarded by turns_; by a thread that waits
  bool aside_ = false;       // guarded by turns_; the reader leaves it to that thread
  bool stops_ = false;       // guarded by turns_
  std::mutex mutex_;
  std::filesystem::path directory_;  // guarded by mutex_
  int waited_ = -1;                  // guarded by mutex_; of inotify, as Bell::watch
  int gone_ = -1;                    // guarded by mutex_; the one before, whose end wakes all
  std::array<Bell, Bells::kCount> bells_;
  int inotify_ = -1;                     // set before the thread starts
  int nudge_ = -1;                       // likewise; the reader shall look at whose turn it is
  std::unique_ptr<std::thread> thread_;  // guarded by mutex_
};

}  // namespace simba::sqlite
