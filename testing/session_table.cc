#include "testing/session_table.h"

#include <algorithm>

namespace simba::testing {

void SessionTable::drop_expired(Line& line, StoreTime now) {
  std::erase_if(line, [now](const Place& place) { return place.holder.transition_at < now; });
}

Observation SessionTable::first(const Line& line, StoreTime now) {
  const auto it = std::find_if(line.begin(), line.end(), [now](const Place& place) {
    return place.holder.transition_at >= now;
  });
  if (it == line.end()) return {MutexOwner::none(), now};
  Observation seen{it->holder, now};
  if (it->is_evicted) seen.owner.id.clear();
  return seen;
}

Observation SessionTable::contend(const Claim& claim, StoreTime now) {
  const auto found = lines_.find(claim.mutex);
  if (claim.renews()) {
    if (found == lines_.end()) return {MutexOwner::none(), now};
    drop_expired(found->second, now);
    Observation owner = first(found->second, now);
    if (!owner.owner.is_owner(claim.wire_id) || owner.owner.token != claim.token) return owner;
  }
  Line& line = found != lines_.end() ? found->second : lines_[std::string(claim.mutex)];
  drop_expired(line, now);
  auto mine = std::find_if(line.begin(), line.end(), [&](const Place& place) {
    return place.holder.id == claim.wire_id && !place.is_evicted;
  });
  if (mine == line.end()) {
    last_token_ = std::max(last_token_, claim.floor) + 1;
    MutexOwner holder{std::string(claim.wire_id), now, now, now, last_token_};
    mine = line.insert(line.end(), {std::move(holder), false});
  }
  mine->holder.ttl_at = now + claim.ttl;
  mine->holder.transition_at = now + claim.ttl + claim.transition;
  return first(line, now);
}

void SessionTable::release(const Claim& claim) {
  const auto found = lines_.find(claim.mutex);
  if (found == lines_.end()) return;
  std::erase_if(found->second, [&](const Place& place) {
    const bool same_term = claim.token == 0 || place.holder.token == claim.token;
    return place.holder.id == claim.wire_id && same_term && !place.is_evicted;
  });
}

Observation SessionTable::observe(std::string_view mutex, StoreTime now) {
  const auto found = lines_.find(mutex);
  if (found == lines_.end()) return {MutexOwner::none(), now};
  drop_expired(found->second, now);
  return first(found->second, now);
}

Observation SessionTable::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                Eviction how, StoreTime now) {
  const auto found = lines_.find(mutex);
  if (found == lines_.end()) return {MutexOwner::none(), now};
  Line& line = found->second;
  drop_expired(line, now);
  const bool is_owner =
      !line.empty() && line.front().holder.id == wire_id && line.front().holder.token == token;
  if (is_owner && how == Eviction::kFreeNow) {
    line.erase(line.begin());
  } else if (is_owner) {
    line.front().is_evicted = true;
  }
  return first(line, now);
}

std::vector<Listed> SessionTable::list(std::string_view prefix, std::string_view after,
                                       std::size_t limit, StoreTime now) const {
  std::vector<Listed> out;
  auto it = after < prefix ? lines_.lower_bound(prefix) : lines_.upper_bound(after);
  for (; it != lines_.end() && out.size() < limit; ++it) {
    if (!it->first.starts_with(prefix)) break;
    out.push_back({it->first, first(it->second, now)});
  }
  return out;
}

}  // namespace simba::testing
