#pragma once

#include <string>

#include "simba/export.h"
#include "simba/mutex_owner.h"
#include "simba/term.h"

namespace simba::inline v0 {

// A step from one owner to the next, as seen by one contender or observer.
//
// `self` is the wire id it was made for: is_acquired, is_released and is_owner compare with that
// one, never with a label. An observer's `self` is empty, so all three are false.
struct SIMBA_EXPORT MutexState {
  MutexOwner before;
  MutexOwner after;
  std::string self;
  Term term;  // of the contender's own term that began or ended; else empty
  Loss loss;  // why, when is_released()

  static const MutexState& none();

  bool is_changed() const { return before.id != after.id; }
  bool is_acquired() const { return is_changed() && after.is_owner(self); }
  bool is_released() const { return is_changed() && before.is_owner(self); }
  bool is_owner() const { return after.is_owner(self); }
};

}  // namespace simba::inline v0
