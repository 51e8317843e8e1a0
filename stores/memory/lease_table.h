#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"

namespace simba::memory {

// The rows of a lease store and what a claim does to them: the rules every such store follows,
// without threads, I/O or a clock.
//
// A copyable value, so that a model can lose what a fail-over loses.
class LeaseTable {
 public:
  Observation contend(const Claim& claim, StoreTime now);
  void release(const Claim& claim);
  Observation observe(std::string_view mutex, StoreTime now) const;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    StoreTime now);
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           StoreTime now) const;

 private:
  static bool may_take(const MutexOwner& row, const Claim& claim, StoreTime now);
  static bool may_renew(const MutexOwner& row, const Claim& claim, StoreTime now);

  std::map<std::string, MutexOwner, std::less<>> rows_;  // a released row keeps its token
};

}  // namespace simba::memory
