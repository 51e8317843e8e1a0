#pragma once

#include <simba/store.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

// A store of one's own: a std::map with a mutex. It cannot push, which is allowed: waiters ask.
class OutsideStore : public simba::Store {
 public:
  const simba::StoreTraits& traits() const override {
    static const simba::StoreTraits traits{"outside", 100, 100, false};
    return traits;
  }

  simba::Answers contend(std::span<const simba::Claim> claims, simba::LocalTime) override {
    const std::lock_guard lock(guard_);
    simba::Answers answers;
    for (const simba::Claim& claim : claims) {
      const simba::StoreTime now = clock();
      const auto it = rows_.find(claim.mutex);
      const bool runs = it != rows_.end() && it->second.transition_at >= now;
      const bool mine = runs && it->second.is_owner(claim.wire_id);
      if (claim.renews() ? mine && it->second.token == claim.token : mine || !runs) {
        simba::MutexOwner& row = rows_[std::string(claim.mutex)];
        if (!mine) {
          row.id = claim.wire_id;
          row.token = std::max(row.token, claim.floor) + 1;
          row.acquired_at = now;
        }
        row.ttl_at = now + claim.ttl;
        row.transition_at = now + claim.ttl + claim.transition;
      }
      answers.emplace_back(look(claim.mutex, now));
    }
    return answers;
  }

  simba::Answers release(std::span<const simba::Claim> claims, simba::LocalTime) override {
    const std::lock_guard lock(guard_);
    for (const simba::Claim& claim : claims) {
      const auto it = rows_.find(claim.mutex);
      if (it != rows_.end() && it->second.is_owner(claim.wire_id)) free(it->second);
    }
    return simba::Answers(claims.size(), simba::Observation{});
  }

  simba::Answers observe(std::span<const std::string_view> mutexes, simba::LocalTime) override {
    const std::lock_guard lock(guard_);
    simba::Answers answers;
    for (const std::string_view mutex : mutexes) answers.emplace_back(look(mutex, clock()));
    return answers;
  }

  simba::Observation evict(std::string_view mutex, std::string_view wire_id, simba::Token token,
                           simba::Eviction how, simba::LocalTime) override {
    const std::lock_guard lock(guard_);
    const auto it = rows_.find(mutex);
    if (it != rows_.end() && it->second.is_owner(wire_id) && it->second.token == token) {
      it->second.id.clear();
      if (how == simba::Eviction::kFreeNow) free(it->second);
    }
    return look(mutex, clock());
  }

  std::unique_ptr<simba::Watch> watch(std::string_view, std::string_view,
                                      std::function<void()>) override {
    return nullptr;
  }

  std::vector<simba::Listed> list(std::string_view prefix, std::string_view after,
                                  std::size_t limit, simba::LocalTime) override {
    const std::lock_guard lock(guard_);
    std::vector<simba::Listed> out;
    for (auto it = rows_.upper_bound(after); it != rows_.end() && out.size() < limit; ++it) {
      if (it->first.starts_with(prefix)) out.push_back({it->first, {it->second, clock()}});
    }
    return out;
  }

 private:
  static simba::StoreTime clock() {
    return simba::StoreTime{std::chrono::duration_cast<simba::milliseconds>(
        simba::BootClock::now().time_since_epoch())};
  }
  // The token stays: the next term's is larger.
  static void free(simba::MutexOwner& row) {
    row.id.clear();
    row.acquired_at = row.ttl_at = row.transition_at = simba::StoreTime{};
  }
  simba::Observation look(std::string_view mutex, simba::StoreTime now) const {
    const auto it = rows_.find(mutex);
    return {it == rows_.end() ? simba::MutexOwner::none() : it->second, now};
  }

  std::mutex guard_;
  std::map<std::string, simba::MutexOwner, std::less<>> rows_;  // guarded by guard_
};
