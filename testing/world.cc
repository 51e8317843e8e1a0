#include "testing/world.h"

#include <algorithm>
#include <utility>

namespace simba::testing {

void World::at(Time when, Task task) {
  events_.push_back({std::max(when, now_), planned_++, std::move(task)});
  std::push_heap(events_.begin(), events_.end(), is_later);
}

bool World::step(Time end) {
  if (events_.empty() || events_.front().when > end) {
    now_ = end;
    return false;
  }
  std::pop_heap(events_.begin(), events_.end(), is_later);
  Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.when;
  event.task();
  return true;
}

}  // namespace simba::testing
