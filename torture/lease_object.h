#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "torture/lease_history.h"

namespace simba::torture {

// Whose term it is, where it is nobody's.
inline constexpr int kNobody = -1, kEvicted = -2, kUnknown = -3;

// A number in which each bit depends on all of `bits`.
inline std::uint64_t mix(std::uint64_t bits) {  // splitmix64
  bits += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

struct LeaseState {
  std::size_t made = 0;      // terms so far
  int owner = kUnknown;      // what was there before the first call
  LocalTime end = kAlways;   // the lease runs at least until then
  LocalTime limit = kNever;  // and at most until then

  std::uint64_t hash() const;
};

// What each call does to the state. `now`: no open call ended before it, so that all that happens
// next may happen as late as then.
class LeaseObject {
 public:
  explicit LeaseObject(const LeaseHistory& history) : history_(history) {}

  // Whether `op` fits the state without ending it; then it has happened.
  bool fits(const Op& op, LeaseState& state, bool& is_late) const;
  // The states after `op` where it does not just fit.
  void after(const Op& op, const LeaseState& state, LocalTime now,
             std::vector<LeaseState>& into) const;

 private:
  const TermOf* owner_of(const LeaseState& state) const {
    return state.owner >= 0 ? &history_.term(state.owner) : nullptr;
  }
  bool is_owned_by(const LeaseState& state, std::uint64_t id) const {
    const TermOf* owner = owner_of(state);
    return owner != nullptr && owner->id == id;
  }
  bool is_in_time(const Op& op, const LeaseState& state) const;
  static void prolong(const Op& op, LeaseState& state);
  bool can_be_free(const LeaseState& state, LocalTime now) const;
  static bool may_be(const Period& period, const Op& op, LocalTime now);
  // Of the lease that runs, and of what was done since it was granted.
  bool may_forget(const LeaseState& state, const Op& op, LocalTime now) const;
  // Makes `term` the owner, and before it those of smaller tokens that were not yet.
  bool reach(LeaseState& state, int term, const Op& op, LocalTime now) const;
  bool reach_back(LeaseState& state, int term, const Op& op, LocalTime now) const;
  int term_of(const Op& op, const LeaseState& state) const;

  const LeaseHistory& history_;
};

}  // namespace simba::torture
