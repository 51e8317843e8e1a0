#pragma once

#include <cstdint>
#include <deque>
#include <utility>
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
  // Something to do then. Things at the same time happen in the order in which they were planned.
  template <typename Body>
  void at(Time when, Body&& body) {
    plan(when).hold(std::forward<Body>(body));
  }
  template <typename Body>
  void after(nanoseconds delay, Body&& body) {
    at(now_ + delay, std::forward<Body>(body));
  }
  // The next thing; false when there is none before `end`, which it is then.
  bool step(Time end);

 private:
  // Small and plain, because a heap moves its elements about.
  struct Event {
    Time when;
    std::uint64_t number;
    Task* task;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  // A task that is to happen then, and does nothing yet.
  Task& plan(Time when);
  bool is_next_at_once() const;

  Time now_{};
  std::uint64_t planned_ = 0;
  std::vector<Event> events_;  // a heap
  std::deque<Event> at_once_;  // planned for the moment at which they were planned
  std::deque<Task> tasks_;     // each stays where it is, and runs there
  std::vector<Task*> unused_;
};

}  // namespace simba::testing
