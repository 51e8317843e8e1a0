#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/mysql/connection.h"

// The atomic steps on the table, for one claim or for many: one round trip each.
//
// One claim waits for its row; of many, those whose row somebody has locked are skipped and
// answered with Blocked, and all takes are where somebody is about to insert one of their rows. On
// MariaDB every statement carries a limit below its deadline.
//
// Claims are checked already. Threads: any; a connection is used by one at a time.
// Errors: what is wrong with one row is its answer; trouble of the statement is thrown.
namespace simba::mysql {

// A mutex that a release made free, and the connections that wait for such a ring.
struct Freed {
  std::string_view mutex;
  std::array<std::uint64_t, 2> waiters{};  // 0: none
};

// Mutexes that this store has released, and that it may find free again: a guess, which only
// decides which statement is tried first.
//
// Threads: any.
class Released {
 public:
  void add(std::uint64_t hash) { at(hash).store(hash, std::memory_order_relaxed); }
  bool remove(std::uint64_t hash) {
    std::uint64_t expected = hash;
    return at(hash).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t>& at(std::uint64_t hash) { return hashes_[hash % hashes_.size()]; }
  std::array<std::atomic<std::uint64_t>, 256> hashes_{};
};

// All takes, or all renewals. Answers in order.
Answers contend(Connection& connection, std::span<const Claim> claims, Released& released,
                LocalTime deadline);
Answers release(Connection& connection, std::span<const Claim> claims, LocalTime deadline,
                std::vector<Freed>& freed);
// None: exactly this term was not the owner.
std::optional<Freed> evict(Connection& connection, const Claim& term, Eviction how,
                           LocalTime deadline);
Answers observe(Connection& connection, std::span<const std::string_view> mutexes,
                LocalTime deadline);
std::vector<Listed> list(Connection& connection, std::string_view prefix, std::string_view after,
                         std::size_t limit, LocalTime deadline);

}  // namespace simba::mysql
