#include "stores/zookeeper/leaders.h"

#include <utility>

namespace simba::zookeeper {
namespace {

constexpr std::size_t kMost = 65'536;  // it only saves questions

}  // namespace

std::optional<Leader> Leaders::find(std::string_view mutex, std::string_view node) const {
  const std::lock_guard lock(guard_);
  const auto it = known_.find(std::string(mutex));
  if (it == known_.end() || it->second.leader.name != node) return std::nullopt;
  return it->second.leader;
}

Leaders::Known& Leaders::make(std::string_view mutex) {
  if (known_.size() >= kMost) known_.clear();
  return known_[std::string(mutex)];
}

void Leaders::learn(std::string_view mutex, Leader leader) {
  const std::lock_guard lock(guard_);
  make(mutex).leader = std::move(leader);
}

std::optional<std::string> Leaders::evicted(std::string_view mutex,
                                            const Container& container) const {
  if (container.version == 0) return std::string();
  const std::lock_guard lock(guard_);
  const auto it = known_.find(std::string(mutex));
  if (it == known_.end()) return std::nullopt;
  const Container& read = it->second.container;
  const bool is_same = read.czxid == container.czxid && read.version == container.version;
  return is_same ? std::optional(it->second.evicted) : std::nullopt;
}

void Leaders::learn_eviction(std::string_view mutex, const Container& container, std::string node) {
  const std::lock_guard lock(guard_);
  Known& known = make(mutex);
  known.container = container;
  known.evicted = std::move(node);
}

void Leaders::add_observer(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  ++observed_[std::string(mutex)];
}

void Leaders::drop_observer(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  const auto it = observed_.find(std::string(mutex));
  if (it != observed_.end() && --it->second == 0) observed_.erase(it);
}

bool Leaders::is_observed(std::string_view mutex) const {
  const std::lock_guard lock(guard_);
  return !observed_.empty() && observed_.contains(std::string(mutex));
}

}  // namespace simba::zookeeper
