#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/mongodb/connection.h"

namespace simba::mongodb {

// The atomic steps on the documents.
//
//   take      findAndModify with the whole condition in its filter; where there is no document, an
//             unowned one is inserted, a duplicate key ignored, and the same asked again. Never an
//             upsert: its reply can tell a loser that it won
//   renew     one claim: findAndModify; many: one update over all _id and ownerId, read back when
//             it matched fewer than it should
//   release   the same with an empty owner
//
// Claims are checked already. Threads: any; a connection is used by one at a time.
// Errors: what is wrong with one document is its answer; trouble of the command is thrown.
class MutexCollection {
 public:
  explicit MutexCollection(const Endpoint& endpoint) : name_(endpoint.options().collection) {}

  // All takes, or all renewals. Answers in order.
  Answers contend(Connection& connection, std::span<const Claim> claims, LocalTime deadline) const;
  // True: something was freed.
  bool release(Connection& connection, std::span<const Claim> claims, LocalTime deadline) const;
  // True: exactly this term was the owner.
  bool evict(Connection& connection, const Claim& term, Eviction how, LocalTime deadline) const;
  Answers observe(Connection& connection, std::span<const std::string_view> mutexes,
                  LocalTime deadline) const;
  std::vector<Listed> list(Connection& connection, std::string_view prefix, std::string_view after,
                           std::size_t limit, LocalTime deadline) const;

 private:
  Answer take_one(Connection& connection, const Claim& claim, LocalTime deadline) const;
  Answers take_many(Connection& connection, std::span<const Claim> claims,
                    LocalTime deadline) const;
  Answer renew_one(Connection& connection, const Claim& claim, LocalTime deadline) const;
  Answers renew_many(Connection& connection, std::span<const Claim> claims,
                     LocalTime deadline) const;
  std::optional<Observation> modify(Connection& connection, const Document& filter,
                                    const Document& change, LocalTime deadline) const;
  std::int64_t update(Connection& connection, const Document& command, LocalTime deadline) const;
  void create(Connection& connection, std::span<const std::string_view> mutexes,
              LocalTime deadline) const;
  // Nothing where there is no document.
  std::vector<std::optional<Answer>> look(Connection& connection,
                                          std::span<const std::string_view> mutexes,
                                          LocalTime deadline) const;

  const std::string name_;
};

}  // namespace simba::mongodb
