#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "simba/time.h"

namespace simba::mysql {

// Which mutexes this process waits for, and for which of them it would hear the bell.
//
// There are two places at a bell, and whoever has one should be able to take the mutex. So a
// process that holds it gives its place up after a while: a release of its own is heard without a
// bell. And one that only watches leaves one of the two to those who contend, and the
// other too where one of them has none.
//
// Threads: any.
class Bells {
 public:
  struct Bell {
    std::atomic<bool> is_live{false};
    bool needs_place() const { return wanted > 0 && holder.empty(); }

    // Guarded by the bells' lock.
    std::size_t wanted = 0;
    bool contends = false;   // somebody here was refused it
    std::string holder;      // the owner, where it is one of ours
    bool has_place = false;  // is listed
    LocalTime idle_since{};  // since when it needs no place
  };

  Bells();
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  ~Bells();

  std::shared_ptr<Bell> want(std::string_view mutex);
  void drop(const std::shared_ptr<Bell>& bell);
  // What was answered to a take by `wire_id`, or, where that is empty, to any other question.
  void note(std::string_view mutex, std::string_view wire_id, const Observation& seen);

  // Readable after a place is needed that was not: for poll().
  int descriptor() const { return changed_; }
  void clear_descriptor() const;

  struct Wanted {
    std::string mutex;
    std::shared_ptr<Bell> bell;
    bool contends;
  };
  // Those for which there should be a place. Forgets what nobody has wanted for a while.
  std::vector<Wanted> all(LocalTime now);

  // Of the connection that waits; 0: none does.
  std::atomic<std::uint64_t> connection_id{0};

 private:
  void forget_unwanted(LocalTime now);

  const int changed_;
  std::mutex guard_;
  std::map<std::string, std::shared_ptr<Bell>, std::less<>> bells_;  // guarded by guard_
  LocalTime swept_{};                                                // guarded by guard_
};

}  // namespace simba::mysql
