#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"

namespace simba::testing {

// A model of a store with sessions and a queue: who claims gets a place in line, the first in line
// owns, and a place is lost when nothing is heard of its holder for a lease: for good, also when
// the clock is set back after somebody has seen it.
class SessionTable {
 public:
  Observation contend(const Claim& claim, StoreTime now);
  void release(const Claim& claim);
  Observation observe(std::string_view mutex, StoreTime now);
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    StoreTime now);
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           StoreTime now) const;
  Token last_token() const { return last_token_; }

 private:
  struct Place {
    MutexOwner holder;
    bool is_evicted = false;  // stays in line, nameless, until its lease ends
  };
  using Line = std::vector<Place>;
  static void drop_expired(Line& line, StoreTime now);
  static Observation first(const Line& line, StoreTime now);

  std::map<std::string, Line, std::less<>> lines_;
  Token last_token_ = 0;
};

}  // namespace simba::testing
