#include "stores/redis/servers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "simba/error.h"
#include "stores/redis/directions.h"
#include "stores/redis/failure.h"
#include "stores/redis/names.h"

namespace simba::redis {

Servers::Servers(std::shared_ptr<const Dialer> dialer)
    : dialer_(std::move(dialer)),
      only_(dialer_->is_cluster() ? nullptr : std::make_shared<Node>(dialer_, std::nullopt)) {}

std::shared_ptr<Node> Servers::at(const Address& address) {
  const std::lock_guard lock(guard_);
  return at_locked(address);
}

std::shared_ptr<Node> Servers::at_locked(const Address& address) {
  std::shared_ptr<Node>& node = nodes_[address];
  if (!node) node = std::make_shared<Node>(dialer_, address);
  return node;
}

std::shared_ptr<Node> Servers::known(std::uint16_t slot) const {
  if (only_) return only_;
  const std::lock_guard lock(guard_);
  return slots_.empty() ? nullptr : slots_[slot];
}

std::shared_ptr<Node> Servers::of_slot(std::uint16_t slot, LocalTime deadline) {
  if (only_) return only_;
  if (auto node = known(slot)) return node;
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

// Any node knows; those in use first, then those of the options.
void Servers::learn(LocalTime deadline) {
  std::vector<std::shared_ptr<Node>> candidates;
  {
    const std::lock_guard lock(guard_);
    for (const Address& host : dialer_->hosts()) at_locked(host);
    for (const auto& [address, node] : nodes_) candidates.push_back(node);
  }
  std::optional<Error> trouble;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const LocalTime now = BootClock::now();
    const LocalTime share = now + (deadline - now) / static_cast<int>(candidates.size() - i);
    try {
      const Replies replies = candidates[i]->run(Commands().add({"CLUSTER", "SLOTS"}), share);
      if (replies[0].is_error()) throw failure(replies[0], dialer_->where());
      read_map(replies[0], *candidates[i]->address());
      return tell();
    } catch (const Error& error) {
      trouble = error;
    }
  }
  throw Error(*trouble);
}

void Servers::read_map(const Reply& map, const Address& asked) {
  const std::vector<SlotRange> ranges = read_slots(map, asked, dialer_->where());
  const std::lock_guard lock(guard_);
  std::vector<std::shared_ptr<Node>> slots(kSlots);
  for (const SlotRange& range : ranges) {
    std::fill(slots.begin() + range.from, slots.begin() + range.to + 1, at_locked(range.master));
  }
  slots_ = std::move(slots);
}

void Servers::moved(std::uint16_t slot, const Address& address) {
  if (only_) return;
  {
    const std::lock_guard lock(guard_);
    if (slots_.empty()) return;
    slots_[slot] = at_locked(address);
  }
  tell();
}

void Servers::doubt() {
  if (only_) return;
  const std::lock_guard lock(guard_);
  slots_.clear();
}

void Servers::ask_again(LocalTime deadline) try {
  if (!only_) learn(deadline);
} catch (const Error&) {  // whoever claims next is told
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
