#include "stores/memory/lease_table.h"

#include <algorithm>

namespace simba::memory {
namespace {

bool is_free(const MutexOwner& row, StoreTime now) { return row.transition_at < now; }

bool holds(const MutexOwner& row, const Claim& claim, StoreTime now) {
  return row.is_owner(claim.wire_id) && !is_free(row, now);
}

void set_free(MutexOwner& row) {
  row.id.clear();
  row.acquired_at = row.ttl_at = row.transition_at = StoreTime{};
}

}  // namespace

bool LeaseTable::may_take(const MutexOwner& row, const Claim& claim, StoreTime now) {
  return is_free(row, now) || holds(row, claim, now);
}

bool LeaseTable::may_renew(const MutexOwner& row, const Claim& claim, StoreTime now) {
  return holds(row, claim, now) && row.token == claim.token;
}

Observation LeaseTable::contend(const Claim& claim, StoreTime now) {
  if (claim.renews()) {
    const auto it = rows_.find(claim.mutex);
    if (it == rows_.end() || !may_renew(it->second, claim, now)) return observe(claim.mutex, now);
    it->second.ttl_at = now + claim.ttl;
    it->second.transition_at = now + claim.ttl + claim.transition;
    return {it->second, now};
  }
  auto it = rows_.find(claim.mutex);
  if (it == rows_.end()) {
    it = rows_.emplace(std::string(claim.mutex), MutexOwner::none()).first;
  }
  MutexOwner& row = it->second;
  if (!may_take(row, claim, now)) return {row, now};
  if (!holds(row, claim, now)) {
    row.id = claim.wire_id;
    row.acquired_at = now;
    row.token = std::max(row.token, claim.floor) + 1;
  }
  row.ttl_at = now + claim.ttl;
  row.transition_at = now + claim.ttl + claim.transition;
  return {row, now};
}

void LeaseTable::release(const Claim& claim) {
  const auto it = rows_.find(claim.mutex);
  if (it == rows_.end() || !it->second.is_owner(claim.wire_id)) return;
  if (claim.token != 0 && it->second.token != claim.token) return;
  set_free(it->second);
}

Observation LeaseTable::observe(std::string_view mutex, StoreTime now) const {
  const auto it = rows_.find(mutex);
  return {it == rows_.end() ? MutexOwner::none() : it->second, now};
}

Observation LeaseTable::evict(std::string_view mutex, std::string_view wire_id, Token token,
                              Eviction how, StoreTime now) {
  const auto it = rows_.find(mutex);
  if (it == rows_.end()) return {MutexOwner::none(), now};
  MutexOwner& row = it->second;
  if (row.is_owner(wire_id) && row.token == token) {
    row.id.clear();
    if (how == Eviction::kFreeNow) set_free(row);
  }
  return {row, now};
}

std::vector<Listed> LeaseTable::list(std::string_view prefix, std::string_view after,
                                     std::size_t limit, StoreTime now) const {
  std::vector<Listed> out;
  auto it = after < prefix ? rows_.lower_bound(prefix) : rows_.upper_bound(after);
  for (; it != rows_.end() && out.size() < limit; ++it) {
    if (!it->first.starts_with(prefix)) break;
    out.push_back({it->first, {it->second, now}});
  }
  return out;
}

}  // namespace simba::memory
