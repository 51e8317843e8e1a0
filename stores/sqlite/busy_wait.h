#pragma once

#include "simba/time.h"

namespace simba::sqlite {

// How to wait for a lock of the file that somebody else holds: the only place of this store where
// time passes. A lock of SQLite can only be tried, not waited for.
//
// Threads: one at a time.
class BusyWait {
 public:
  void start(LocalTime deadline) noexcept;

  LocalTime deadline() const noexcept { return deadline_; }
  // Since the start, for whatever lock.
  bool has_waited() const noexcept { return has_waited_; }

  // Waits a little. False: the deadline has passed. `count` begins at 0 for each lock.
  bool again(int count) noexcept;

  // Does `once` until it is true. False: the deadline has passed.
  template <class Once>
  bool until(Once once) {
    for (int count = 0; !once(); ++count) {
      if (!again(count)) return false;
    }
    return true;
  }

  // SQLite's busy handler; `self` is a BusyWait.
  static int handle(void* self, int count) noexcept;

 private:
  LocalTime deadline_{};
  LocalTime since_{};  // of the lock waited for now
  bool has_waited_ = false;
};

}  // namespace simba::sqlite
