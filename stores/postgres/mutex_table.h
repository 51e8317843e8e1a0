#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/postgres/connection.h"

namespace simba::postgres {

// The atomic steps on the table: one statement each, for one claim or for many.
//
// One claim waits for its row; of many, those whose row somebody has locked are skipped and
// answered with Blocked. Every statement carries a limit for such waits, below its deadline.
//
// Claims are checked already. Threads: any; a connection is used by one at a time.
// Errors: what is wrong with one row is its answer; trouble of the statement is thrown.
class MutexTable {
 public:
  explicit MutexTable(const Endpoint& endpoint);

  std::span<const Statement> statements() const { return statements_; }

  // All takes, or all renewals. Answers in order.
  Answers contend(Connection& connection, std::span<const Claim> claims, LocalTime deadline) const;
  // `freed` gets the mutexes that this made free.
  Answers release(Connection& connection, std::span<const Claim> claims, LocalTime deadline,
                  std::vector<std::string_view>& freed) const;
  // True: exactly this term was the owner.
  bool evict(Connection& connection, const Claim& term, Eviction how, LocalTime deadline) const;
  Answers observe(Connection& connection, std::span<const std::string_view> mutexes,
                  LocalTime deadline) const;
  std::vector<Listed> list(Connection& connection, std::string_view prefix, std::string_view after,
                           std::size_t limit, LocalTime deadline) const;

 private:
  Answer contend_one(Connection& connection, const Claim& claim, LocalTime deadline) const;
  Result ask_one(Connection& connection, const Claim& claim, LocalTime deadline) const;
  Answers contend_many(Connection& connection, std::span<const Claim> claims,
                       LocalTime deadline) const;

  const std::vector<Statement> statements_;  // by Which
};

}  // namespace simba::postgres
