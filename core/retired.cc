#include "core/retired.h"

#include <algorithm>
#include <utility>

namespace simba::core {

// It is looked at when it is to be released, and when it can be forgotten.
RetiredIds::Look RetiredIds::look_of(const Ids::value_type& id) {
  return {std::min(id.second.next, id.second.farewell.until), &id.first};
}

void RetiredIds::plan(Ids::value_type& id, LocalTime next) {
  auto planned = plan_.extract(look_of(id));
  id.second.next = next;
  if (planned) {
    planned.value() = look_of(id);
    plan_.insert(std::move(planned));
  } else {
    plan_.insert(look_of(id));
  }
}

void RetiredIds::add(Farewell farewell, LocalTime now) {
  std::string wire_id = farewell.wire_id;
  const auto [it, is_new] = ids_.try_emplace(std::move(wire_id));
  if (!is_new) plan_.erase(look_of(*it));
  const bool queued = it->second.queued;
  it->second = Entry{std::move(farewell), now};
  it->second.queued = queued;
  plan(*it, queued ? LocalTime::max() : now);
}

std::vector<Farewell> RetiredIds::due(LocalTime now) {
  std::vector<Farewell> out;
  while (next_timer() <= now) {
    const auto it = ids_.find(*plan_.begin()->wire_id);
    Entry& entry = it->second;
    if (entry.farewell.until <= now) {
      plan_.erase(plan_.begin());
      ids_.erase(it);
      continue;
    }
    out.push_back(entry.farewell);
    entry.queued = true;
    plan(*it, LocalTime::max());
  }
  return out;
}

bool RetiredIds::sent(const std::string& wire_id, LocalTime now) {
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return false;
  Entry& entry = it->second;
  entry.queued = entry.again = false;
  // Should nothing be heard of it.
  plan(*it, now + 2 * entry.farewell.call_deadline + entry.farewell.pause);
  return true;
}

void RetiredIds::released(const std::string& wire_id) {
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return;
  it->second.tried = it->second.done = true;
  if (it->second.queued) return;
  plan(*it, it->second.again ? LocalTime::min() : LocalTime::max());
}

void RetiredIds::failed(const std::string& wire_id, LocalTime now) {
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return;
  it->second.tried = true;
  if (it->second.queued) return;
  if (!it->second.done) plan(*it, now + it->second.farewell.pause);
}

bool RetiredIds::is_named(const std::string& wire_id, LocalTime now) {
  if (ids_.empty()) return false;
  const auto it = ids_.find(wire_id);
  if (it == ids_.end()) return false;
  if (it->second.queued) return true;
  if (it->second.next == LocalTime::max()) {
    plan(*it, now);
  } else {
    it->second.again = true;
  }
  return true;
}

bool RetiredIds::is_settled() const {
  return std::all_of(ids_.begin(), ids_.end(), [](const auto& id) { return id.second.tried; });
}

}  // namespace simba::core
