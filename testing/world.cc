#include "testing/world.h"

#include <algorithm>

namespace simba::testing {

World::Task& World::plan(Time when) {
  if (unused_.empty()) unused_.push_back(&tasks_.emplace_back());
  Task& task = *unused_.back();
  unused_.pop_back();
  events_.push_back({std::max(when, now_), planned_++, &task});
  std::push_heap(events_.begin(), events_.end(), Later{});
  return task;
}

bool World::step(Time end) {
  if (events_.empty() || events_.front().when > end) {
    now_ = std::max(now_, end);
    return false;
  }
  std::pop_heap(events_.begin(), events_.end(), Later{});
  const Event event = events_.back();
  events_.pop_back();
  now_ = event.when;
  (*event.task)();
  event.task->clear();
  unused_.push_back(event.task);
  return true;
}

}  // namespace simba::testing
