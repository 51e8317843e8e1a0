#include "core/deadlines.h"

namespace simba::core {

void Deadlines::set(Timed& who, LocalTime at) {
  if (at == LocalTime::max()) {
    remove(who);
    return;
  }
  if (who.heap_slot == Timed::kNone) {
    heap_.push_back({at, &who});
    sift_up(heap_.size() - 1, {at, &who});
    return;
  }
  const std::size_t slot = who.heap_slot;
  if (at < heap_[slot].at) {
    sift_up(slot, {at, &who});
  } else if (at > heap_[slot].at) {
    sift_down(slot, {at, &who});
  }
}

void Deadlines::remove(Timed& who) {
  const std::size_t slot = who.heap_slot;
  if (slot == Timed::kNone) return;
  who.heap_slot = Timed::kNone;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (slot == heap_.size()) return;
  const LocalTime removed = heap_[slot].at;
  if (last.at < removed) {
    sift_up(slot, last);
  } else {
    sift_down(slot, last);
  }
}

LocalTime Deadlines::soonest() const { return heap_.empty() ? LocalTime::max() : heap_.front().at; }

Timed* Deadlines::pop_due(LocalTime now) {
  if (heap_.empty() || heap_.front().at > now) return nullptr;
  Timed* who = heap_.front().who;
  remove(*who);
  return who;
}

void Deadlines::place(std::size_t slot, Entry entry) {
  heap_[slot] = entry;
  entry.who->heap_slot = slot;
}

void Deadlines::sift_up(std::size_t slot, Entry entry) {
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (heap_[parent].at <= entry.at) break;
    place(slot, heap_[parent]);
    slot = parent;
  }
  place(slot, entry);
}

void Deadlines::sift_down(std::size_t slot, Entry entry) {
  for (std::size_t child = 2 * slot + 1; child < heap_.size(); child = 2 * slot + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (heap_[child].at >= entry.at) break;
    place(slot, heap_[child]);
    slot = child;
  }
  place(slot, entry);
}

}  // namespace simba::core
