#include "stores/redis/subscriptions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "simba/error.h"

namespace simba::redis {

Bell::Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw Error(Errc::kUnreachable, "redis: there is no file descriptor left");
}
Bell::~Bell() { close(descriptor_); }
void Bell::ring() const noexcept { eventfd_write(descriptor_, 1); }
void Bell::quiet() const noexcept {
  eventfd_t ignored = 0;
  eventfd_read(descriptor_, &ignored);
}

Subscriptions::Watched Subscriptions::watch(const std::string& mutex, std::shared_ptr<Node> node) {
  const std::lock_guard lock(guard_);
  Entry& entry = entries_[mutex];
  ++entry.watches;
  if (!entry.node) entry.node = std::move(node);
  return {entry.stage == Stage::kNew, &entry.is_live};
}

bool Subscriptions::unwatch(const std::string& mutex, LocalTime now) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(mutex);
  if (it == entries_.end() || --it->second.watches > 0) return false;
  it->second.unwatched = now;
  const bool was_queued = std::exchange(it->second.is_queued, false);
  if (it->second.stage == Stage::kNew) entries_.erase(it);
  return was_queued;
}

bool Subscriptions::knows(std::string_view mutex) const {
  const std::lock_guard lock(guard_);
  return entries_.contains(mutex);
}

Subscriptions::Place Subscriptions::place(std::string_view mutex) const {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(mutex);
  if (it == entries_.end()) return {};
  const Entry& entry = it->second;
  return {entry.stage == Stage::kLive && entry.watches > 0, entry.is_queued, entry.since,
          entry.lease};
}

void Subscriptions::queued(std::string_view mutex, std::int64_t since, std::int64_t lease) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(mutex);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (!std::exchange(entry.is_queued, true)) entry.since = since;
  entry.lease = lease;
}

void Subscriptions::left_queue(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(mutex);
  if (it != entries_.end()) it->second.is_queued = false;
}

Subscriptions::Changes Subscriptions::changes(const Node* node, LocalTime now) {
  const std::lock_guard lock(guard_);
  Changes changes;
  if (const auto it = departed_.find(node); it != departed_.end()) {
    changes.unsubscribe = std::move(it->second);
    departed_.erase(it);
  }
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    if (entry.node.get() != node) {
      ++it;
      continue;
    }
    const LocalTime ends = entry.unwatched + kLinger;
    if (entry.watches == 0 && ends <= now) {
      if (entry.stage != Stage::kNew) changes.unsubscribe.push_back(it->first);
      it = entries_.erase(it);
      continue;
    }
    changes.next = std::min(changes.next, entry.watches == 0 ? ends : now + kLinger);
    if (entry.stage == Stage::kNew) {
      entry.set(Stage::kAsked);
      changes.subscribe.push_back(it->first);
    }
    ++it;
  }
  return changes;
}

std::shared_ptr<Node> Subscriptions::wanted(const Node* node) const {
  const std::lock_guard lock(guard_);
  for (const auto& [mutex, entry] : entries_) {
    if (entry.node.get() == node && entry.watches > 0) return entry.node;
  }
  return nullptr;
}

bool Subscriptions::is_at_a_loss() const {
  const std::lock_guard lock(guard_);
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) {
    return each.second.node == nullptr && each.second.watches > 0;
  });
}

bool Subscriptions::is_watched() const {
  const std::lock_guard lock(guard_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& each) { return each.second.watches > 0; });
}

void Subscriptions::confirmed(const std::string& mutex) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(mutex);
  if (it != entries_.end() && it->second.stage == Stage::kAsked) it->second.set(Stage::kLive);
}

bool Subscriptions::awaits_answer(const Node* node) const {
  const std::lock_guard lock(guard_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
    return each.second.node.get() == node && each.second.stage == Stage::kAsked;
  });
}

void Subscriptions::lost(const Node* node) {
  const std::lock_guard lock(guard_);
  departed_.erase(node);
  std::erase_if(entries_, [&](const auto& each) {
    return each.second.node.get() == node && each.second.watches == 0;
  });
  for (auto& [mutex, entry] : entries_) {
    if (entry.node.get() == node) entry.set(Stage::kNew);
  }
}

std::vector<std::shared_ptr<Node>> Subscriptions::place_all(
    const std::function<std::shared_ptr<Node>(std::string_view mutex)>& node_of) {
  const std::lock_guard lock(guard_);
  std::vector<std::shared_ptr<Node>> busy;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto each = it++;
    auto& [mutex, entry] = *each;
    std::shared_ptr<Node> node = node_of(mutex);
    if (!node || node == entry.node) continue;
    if (entry.node && entry.stage != Stage::kNew) {
      departed_[entry.node.get()].push_back(mutex);
      busy.push_back(entry.node);
    }
    if (entry.watches == 0) {  // nobody would ask the new one for it, nor forget it there
      entries_.erase(each);
      continue;
    }
    busy.push_back(node);
    entry.node = std::move(node);
    entry.set(Stage::kNew);
    entry.is_queued = false;
  }
  return busy;
}

}  // namespace simba::redis
