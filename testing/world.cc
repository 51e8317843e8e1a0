#include "testing/world.h"

#include <algorithm>

namespace simba::testing {

World::Task& World::plan(Time when) {
  if (unused_.empty()) unused_.push_back(&tasks_.emplace_back());
  Task& task = *unused_.back();
  unused_.pop_back();
  if (when <= now_) {
    at_once_.push_back({now_, planned_++, &task});
  } else {
    events_.push_back({when, planned_++, &task});
    std::push_heap(events_.begin(), events_.end(), Later{});
  }
  return task;
}

// Time does not go on while there is anything to do at once.
bool World::is_next_at_once() const {
  return !at_once_.empty() && (events_.empty() || Later{}(events_.front(), at_once_.front()));
}

bool World::step(Time end) {
  Event event{};
  if (is_next_at_once() && now_ <= end) {
    event = at_once_.front();
    at_once_.pop_front();
  } else if (!events_.empty() && events_.front().when <= end) {
    std::pop_heap(events_.begin(), events_.end(), Later{});
    event = events_.back();
    events_.pop_back();
  } else {
    now_ = std::max(now_, end);
    return false;
  }
  now_ = event.when;
  (*event.task)();
  event.task->clear();
  unused_.push_back(event.task);
  return true;
}

}  // namespace simba::testing
