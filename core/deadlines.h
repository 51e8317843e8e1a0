#pragma once

#include <cstddef>
#include <vector>

#include "simba/time.h"

namespace simba::core {

// Something with at most one deadline. Its owner removes it before it dies.
struct Timed {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t heap_slot = kNone;
};

// The deadlines of many, soonest first: a binary heap in which each knows its slot.
//
// Threads: none of its own; calls must be serialized.
class Deadlines {
 public:
  // LocalTime::max() removes.
  void set(Timed& who, LocalTime at);
  void remove(Timed& who);
  LocalTime soonest() const;
  // Removes and returns one whose deadline is at or before `now`; null when there is none.
  Timed* pop_due(LocalTime now);
  std::size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    LocalTime at;
    Timed* who;
  };
  void place(std::size_t slot, Entry entry);
  void sift_up(std::size_t slot, Entry entry);
  void sift_down(std::size_t slot, Entry entry);

  std::vector<Entry> heap_;
};

}  // namespace simba::core
