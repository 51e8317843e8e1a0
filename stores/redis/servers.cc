#include "stores/redis/servers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simba/error.h"
#include "stores/redis/failure.h"
#include "stores/redis/names.h"

namespace simba::redis {

Servers::Servers(std::shared_ptr<const Dialer> dialer)
    : dialer_(std::move(dialer)),
      only_(dialer_->is_cluster() ? nullptr : std::make_shared<Node>(dialer_, std::nullopt)) {}

std::shared_ptr<Node> Servers::at(const Address& address) {
  Nodes unused;
  const std::lock_guard lock(guard_);
  return at_locked(address, unused);
}

std::shared_ptr<Node> Servers::at_locked(const Address& address, Nodes& unused) {
  if (const auto it = nodes_.find(address); it != nodes_.end()) return it->second;
  if (nodes_.size() >= kMostMasters) forget_unused(unused);
  if (nodes_.size() >= kMostMasters) {
    // More than any map has: redirects made them up.
    slots_.clear();
    forget_unused(unused);
  }
  return nodes_[address] = std::make_shared<Node>(dialer_, address);
}

// Slots, calls and listeners have a share in theirs, which they get under this lock.
void Servers::forget_unused(Nodes& unused) {
  const std::vector<Address>& hosts = dialer_->hosts();
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const bool named = std::find(hosts.begin(), hosts.end(), it->first) != hosts.end();
    if (named || it->second.use_count() > 1) {
      ++it;
      continue;
    }
    doubted_.erase(it->first);
    unused.push_back(std::move(it->second));
    it = nodes_.erase(it);
  }
}

std::size_t Servers::count() const {
  const std::lock_guard lock(guard_);
  return nodes_.size();
}

std::shared_ptr<Node> Servers::known(std::uint16_t slot) const {
  if (only_) return only_;
  const std::lock_guard lock(guard_);
  return slots_.empty() ? nullptr : slots_[slot];
}

std::shared_ptr<Node> Servers::of_slot(std::uint16_t slot, LocalTime deadline) {
  if (only_) return only_;
  {
    const std::lock_guard lock(guard_);
    auto node = slots_.empty() ? nullptr : slots_[slot];
    if (node && !doubted_.contains(*node->address())) return node;
  }
  learn(deadline);
  if (auto node = known(slot)) return node;
  throw Error(Errc::kUnreachable,
              dialer_->where() + ": no node of the cluster serves slot " + std::to_string(slot));
}

std::vector<std::shared_ptr<Node>> Servers::masters(LocalTime deadline) {
  if (only_) return {only_};
  of_slot(0, deadline);
  const std::lock_guard lock(guard_);
  std::set<std::shared_ptr<Node>> all(slots_.begin(), slots_.end());
  all.erase(nullptr);
  return {all.begin(), all.end()};
}

// Any node knows, but one that was mastered away while it was cut off from the others has an old
// map, and lives: where the map is in doubt, whoever gave it is asked behind the others, and who
// serves nothing behind those that serve. One in doubt may be silent, and then costs its whole
// share of the time.
Servers::Nodes Servers::candidates() {
  Nodes all, unused;
  const std::lock_guard lock(guard_);
  for (const Address& host : dialer_->hosts()) at_locked(host, unused);
  for (const auto& [address, node] : nodes_) all.push_back(node);
  const std::set<std::shared_ptr<Node>> serving(slots_.begin(), slots_.end());
  const bool is_in_doubt = !doubted_.empty() || serving.contains(nullptr);
  const auto put_last = [&](const auto& goes_last) {
    std::stable_partition(all.begin(), all.end(),
                          [&](const auto& node) { return !goes_last(node); });
  };
  put_last([](const auto& node) { return node->is_down(); });
  put_last([&](const auto& node) { return !serving.contains(node); });
  put_last([&](const auto& node) { return is_in_doubt && source_ == *node->address(); });
  put_last([&](const auto& node) { return doubted_.contains(*node->address()); });
  return all;
}

void Servers::learn(LocalTime deadline) {
  if (only_) return;
  Nodes asked = candidates();
  std::optional<Error> trouble;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const LocalTime now = BootClock::now();
    const LocalTime share = now + (deadline - now) / static_cast<int>(asked.size() - i);
    try {
      const Replies replies = asked[i]->run(Commands().add({"CLUSTER", "SLOTS"}), share);
      if (replies[0].is_error()) throw failure(replies[0], dialer_->where());
      const auto ranges = read_slots(replies[0], *asked[i]->address(), dialer_->where());
      // It was taken out of the cluster, or never was in it.
      if (ranges.empty()) {
        throw Error(Errc::kUnreachable, "redis at " + asked[i]->address()->text() +
                                            ": it is in no cluster, or in one where nobody serves "
                                            "a slot; name other nodes in the URL");
      }
      const Address source = *asked[i]->address();
      asked.clear();  // in use no longer
      install(ranges, source);
      return tell();
    } catch (const Error& error) {
      trouble = error;
    }
  }
  throw Error(*trouble);
}

void Servers::install(const std::vector<SlotRange>& ranges, const Address& source) {
  Nodes unused;
  const std::lock_guard lock(guard_);
  Nodes slots(kSlots);
  for (const SlotRange& range : ranges) {
    std::fill(slots.begin() + range.from, slots.begin() + range.to + 1,
              at_locked(range.master, unused));
  }
  slots_ = std::move(slots);
  source_ = source;
  doubted_.clear();
  forget_unused(unused);
}

void Servers::moved(std::uint16_t slot, const Address& address) {
  if (only_) return;
  {
    Nodes unused;
    const std::lock_guard lock(guard_);
    std::shared_ptr<Node> node = at_locked(address, unused);
    if (slots_.empty()) return;
    slots_[slot] = std::move(node);
    forget_unused(unused);
  }
  tell();
}

void Servers::doubt(const Node& node) {
  if (only_) return;
  const std::lock_guard lock(guard_);
  if (nodes_.contains(*node.address())) doubted_.insert(*node.address());
}

void Servers::on_change(std::function<void()> told) {
  const std::lock_guard lock(guard_);
  told_ = std::move(told);
}

void Servers::tell() {
  std::function<void()> told;
  {
    const std::lock_guard lock(guard_);
    told = told_;
  }
  if (told) told();
}

}  // namespace simba::redis
