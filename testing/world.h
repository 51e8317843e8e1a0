#pragma once

#include <cstdint>
#include <vector>

#include "simba/testing/task.h"
#include "simba/time.h"

namespace simba::testing {

// True time, which nobody inside a simulation can read, and what happens in it.
//
// Threads: none; a simulation is one thread.
class World {
 public:
  using Time = nanoseconds;  // since the beginning
  using Task = testing::Task<96>;

  Time now() const { return now_; }
  // Things at the same time happen in the order in which they were planned.
  void at(Time when, Task task);
  void after(nanoseconds delay, Task task) { at(now_ + delay, std::move(task)); }
  // The next thing; false when there is none before `end`, which it is then.
  bool step(Time end);

 private:
  // Small and plain, because a heap moves its elements about; the task stands in its slot.
  struct Event {
    Time when;
    std::uint64_t number;
    std::size_t slot;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  Time now_{};
  std::uint64_t planned_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<Task> tasks_;    // by slot
  std::vector<std::size_t> free_slots_;
};

}  // namespace simba::testing
