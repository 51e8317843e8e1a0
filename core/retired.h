#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "simba/time.h"

namespace simba::core {

// One wire id to be given back.
struct Farewell {
  std::string mutex;
  std::string wire_id;
  LocalTime until{};  // no lease under it can be left then
  nanoseconds call_deadline{};
  nanoseconds pause{};  // between attempts
};

// Wire ids that were given up and may still stand in the store: each is released, again after an
// error, and again when an observation names it (a late claim arrived after the release). In an
// outage there are many: each waits in line once, however long that takes.
//
// Threads: none of its own; calls must be serialized.
class RetiredIds {
 public:
  void add(Farewell farewell, LocalTime now);
  // The ids to put in line for their release now.
  std::vector<Farewell> due(LocalTime now);
  // Its release leaves the line. False when the id is forgotten: nothing is left to release.
  bool sent(const std::string& wire_id, LocalTime now);
  LocalTime next_timer() const { return plan_.empty() ? LocalTime::max() : plan_.begin()->at; }
  void released(const std::string& wire_id);
  void failed(const std::string& wire_id, LocalTime now);
  // True when the id is one of these, and is now due again.
  bool is_named(const std::string& wire_id, LocalTime now);
  // None whose release has not been tried.
  bool is_settled() const;
  bool empty() const { return ids_.empty(); }

 private:
  struct Entry {
    Farewell farewell;
    LocalTime next{};     // when to release it (again); max(): it is in line or has been released
    bool tried = false;   // at least once, with whatever result
    bool done = false;    // released at least once
    bool again = false;   // it was named while its release was under way
    bool queued = false;  // in line: whatever is heard meanwhile, its release is still to come
  };
  using Ids = std::unordered_map<std::string, Entry>;
  // When to look at which. Those of the same time in the order of their ids, so that a simulation
  // can be repeated.
  struct Look {
    LocalTime at;
    const std::string* wire_id;  // in `ids_`

    friend bool operator<(const Look& a, const Look& b) {
      return a.at != b.at ? a.at < b.at : *a.wire_id < *b.wire_id;
    }
  };
  static Look look_of(const Ids::value_type& id);
  void plan(Ids::value_type& id, LocalTime next);

  Ids ids_;
  std::set<Look> plan_;
};

}  // namespace simba::core
