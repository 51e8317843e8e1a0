#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simba/export.h"
#include "simba/time.h"

namespace simba::inline v0 {

// Who owns a mutex, and until when.
//
//   acquired_at          ttl_at              transition_at
//        |-- owner works --|-- only the owner --|-- anyone may
//        |                 |   may still renew  |   take over
//
// A plain value. It never reads a clock: the caller says what time it is, by the store's clock.
// An owner whose name was taken away (evicted) has an empty id and a transition_at still to come:
// nobody owns the mutex, and nobody may take it before that.
struct SIMBA_EXPORT MutexOwner {
  std::string id;                        // the whole wire id; empty: nobody
  std::optional<StoreTime> acquired_at;  // unknown for a foreign owner in some layouts
  std::optional<StoreTime> ttl_at;       // likewise
  StoreTime transition_at{};
  Token token = 0;

  static const MutexOwner& none();

  bool is_owner(std::string_view wire_id) const { return !id.empty() && id == wire_id; }
  bool is_in_ttl(StoreTime now) const { return ttl_at && *ttl_at > now; }
  bool is_in_ttl(std::string_view wire_id, StoreTime now) const {
    return is_owner(wire_id) && is_in_ttl(now);
  }
  bool is_in_transition(StoreTime now) const { return transition_at >= now; }
  bool has_owner(StoreTime now) const { return is_in_transition(now); }

  friend bool operator==(const MutexOwner&, const MutexOwner&) = default;
};

}  // namespace simba::inline v0
