#include "testing/world.h"

#include <algorithm>
#include <utility>

namespace simba::testing {

void World::at(Time when, Task task) {
  if (free_slots_.empty()) {
    free_slots_.push_back(tasks_.size());
    tasks_.emplace_back();
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  tasks_[slot] = std::move(task);
  events_.push_back({std::max(when, now_), planned_++, slot});
  std::push_heap(events_.begin(), events_.end(), Later{});
}

bool World::step(Time end) {
  if (events_.empty() || events_.front().when > end) {
    now_ = std::max(now_, end);
    return false;
  }
  std::pop_heap(events_.begin(), events_.end(), Later{});
  const Event event = events_.back();
  events_.pop_back();
  Task task = std::move(tasks_[event.slot]);
  free_slots_.push_back(event.slot);
  now_ = event.when;
  task();
  return true;
}

}  // namespace simba::testing
