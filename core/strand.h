#pragma once

#include <optional>
#include <vector>

#include "simba/mutex_state.h"

namespace simba::core {

// What one contender still has to be told: in order, one at a time.
//
// A term that ended before its on_acquired began is not told at all: neither its beginning nor its
// end.
//
// Threads: none of its own; calls must be serialized.
class Strand {
 public:
  struct Notice {
    MutexState state;
    bool silent = false;  // skipped: nobody is told, but its work counts as done
  };

  // True when the strand was idle: the caller arranges that next() is called.
  bool push(MutexState state);
  // What others did is not told any more; the end of an own term still is.
  void forget_others();
  bool is_running() const { return running_; }
  // The next notice; none makes the strand idle.
  std::optional<Notice> next();

 private:
  void forget_passed_term();

  std::vector<Notice> notices_;  // few; an empty deque would hold 600 bytes per contender
  bool running_ = false;
};

}  // namespace simba::core
