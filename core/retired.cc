#include "core/retired.h"

#include <algorithm>
#include <utility>

namespace simba::core {

void RetiredIds::add(Farewell farewell, LocalTime now) {
  std::string id = farewell.wire_id;
  ids_.insert_or_assign(std::move(id), Entry{std::move(farewell), now});
  want(now);
}

std::vector<Farewell> RetiredIds::due(LocalTime now) {
  std::vector<Farewell> out;
  if (soonest_ > now) return out;
  soonest_ = LocalTime::max();
  for (auto it = ids_.begin(); it != ids_.end();) {
    auto& [farewell, next, done, again] = it->second;
    if (farewell.until <= now) {
      it = ids_.erase(it);
      continue;
    }
    if (next <= now) {
      out.push_back(farewell);
      again = false;
      next = now + 2 * farewell.call_deadline + farewell.pause;  // should nothing be heard of it
    }
    want(std::min(next, farewell.until));
    ++it;
  }
  return out;
}

void RetiredIds::released(const std::string& wire_id) {
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return;
  it->second.done = true;
  it->second.next = it->second.again ? LocalTime::min() : LocalTime::max();
  want(std::min(it->second.next, it->second.farewell.until));
}

void RetiredIds::failed(const std::string& wire_id, LocalTime now) {
  const auto it = ids_.find(wire_id);
  if (it == ids_.end() || it->second.done) return;
  it->second.next = now + it->second.farewell.pause;
  want(it->second.next);
}

bool RetiredIds::is_named(const std::string& wire_id, LocalTime now) {
  if (ids_.empty()) return false;
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return false;
  if (it->second.next == LocalTime::max()) {
    it->second.next = now;
    want(now);
  } else {
    it->second.again = true;
  }
  return true;
}

bool RetiredIds::is_settled() const {
  return std::all_of(ids_.begin(), ids_.end(), [](const auto& id) { return id.second.done; });
}

}  // namespace simba::core
