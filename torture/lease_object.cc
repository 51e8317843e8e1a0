#include "torture/lease_object.h"

#include <algorithm>

namespace simba::torture {
namespace {

std::uint64_t bits_of(LocalTime at) {
  return static_cast<std::uint64_t>(at.time_since_epoch().count());
}

}  // namespace

std::uint64_t LeaseState::hash() const {
  const std::uint64_t sum = mix(made) + mix(static_cast<std::uint64_t>(owner) ^ 0x5555U);
  return mix(sum ^ bits_of(end)) + mix(bits_of(limit) ^ 0xaaaaU);
}

bool LeaseObject::is_in_time(const Op& op, const LeaseState& state) const {
  if (state.limit == kNever) return true;
  const TermOf& term = *owner_of(state);
  nanoseconds more = history_.rules.allowance;
  more += static_cast<nanoseconds::rep>(op.waived) * std::max(term.longest, op.lease);
  for (const LeaseRules::Step& step : history_.rules.steps) {
    if (step.by < nanoseconds{0} && step.at >= term.first_asked && step.at <= op.after)
      more -= step.by;
  }
  return op.before <= state.limit + more;
}

void LeaseObject::prolong(const Op& op, LeaseState& state) {
  state.end = std::max(state.end, op.before + op.lease);
  if (state.limit != kNever) state.limit = std::max(state.limit, op.after + op.lease);
}

bool LeaseObject::fits(const Op& op, LeaseState& state, bool& is_late) const {
  switch (op.kind) {
    case Op::Kind::kGrant:
      if (state.owner != op.term) return false;
      if (!is_in_time(op, state)) {
        is_late = true;
        return false;
      }
      prolong(op, state);
      return true;
    case Op::Kind::kSeen:
      return op.term == kNoTerm ? is_owned_by(state, op.id) : state.owner == op.term;
    case Op::Kind::kNameless:
      // Who waits in a queue and was not told yet that it is first hears no name, not even its own.
      return state.owner == kEvicted || (history_.rules.queues && is_owned_by(state, op.id));
    case Op::Kind::kFree:
      return state.owner == kNobody;
    case Op::Kind::kRelease:
      return !is_owned_by(state, op.id) && !history_.has_later_term(op.id, state.made);
    case Op::Kind::kEvict:
      return state.owner != op.term && op.term < static_cast<int>(state.made);
  }
  return false;
}

bool LeaseObject::may_be(const Period& period, const Op& op, LocalTime now) {
  return period.begin <= now && op.before <= period.end;
}

// A lease that ends later was promised after the kill, by the server that leads since then.
bool LeaseObject::may_forget(const LeaseState& state, const Op& op, LocalTime now) const {
  const std::vector<Period>& periods = history_.rules.forgets;
  return std::any_of(periods.begin(), periods.end(), [&](const Period& period) {
    return may_be(period, op, now) && state.end <= period.end;
  });
}

bool LeaseObject::can_be_free(const LeaseState& state, LocalTime now) const {
  if (state.owner == kNobody || state.owner == kUnknown || state.end == kAlways) return true;
  if (state.end - history_.rules.allowance <= now) return true;
  const TermOf* owner = owner_of(state);
  if (owner == nullptr) return false;
  const auto begun = [now](const auto& table, const auto& key) {
    const auto it = table.find(key);
    return it != table.end() && it->second <= now;
  };
  return begun(history_.unheard_release, owner->id) ||
         begun(history_.unheard_free, std::pair(owner->id, owner->token));
}

// Of an owner that was seen without a token: its term now, or its next.
int LeaseObject::term_of(const Op& op, const LeaseState& state) const {
  if (op.term != kNoTerm) return op.term;
  for (std::size_t i = state.made; i < history_.terms.size(); ++i) {
    if (history_.terms[i].id == op.id) return static_cast<int>(i);
  }
  return history_.last_term.at(op.id);
}

// A term that has been: a server forgot what came after it, or that it was released.
bool LeaseObject::reach_back(LeaseState& state, int term, const Op& op, LocalTime now) const {
  const std::vector<Period>& revives = history_.rules.revives;
  const bool is_last = term + 1 == static_cast<int>(state.made) && state.owner == kNobody;
  const bool may_revive =
      is_last && std::any_of(revives.begin(), revives.end(),
                             [&](const Period& period) { return may_be(period, op, now); });
  if (state.owner != kUnknown && !may_revive && !may_forget(state, op, now)) return false;
  state.owner = term;
  state.end = kAlways;
  state.limit = kNever;
  return true;
}

bool LeaseObject::reach(LeaseState& state, int term, const Op& op, LocalTime now) const {
  if (term < static_cast<int>(state.made)) return reach_back(state, term, op, now);
  while (true) {
    const bool was_unknown = state.owner == kUnknown;
    if (!can_be_free(state, now) && !may_forget(state, op, now)) return false;
    const bool takes_itself =
        op.kind == Op::Kind::kGrant && op.takes && static_cast<int>(state.made) == term;
    if (!takes_itself && history_.terms[state.made].unheard_from > now) {
      if (!was_unknown || (op.kind == Op::Kind::kGrant && op.takes)) return false;
      state.made = static_cast<std::size_t>(term);  // it was there before the first call
    }
    const std::size_t next = state.made;
    if (next > 0 && history_.terms[next].token <= history_.terms[next - 1].token) return false;
    state.made = next + 1;
    state.owner = static_cast<int>(next);
    state.end = kAlways;
    state.limit = takes_itself ? kAlways : kNever;
    if (state.owner == term) return true;
  }
}

void LeaseObject::after(const Op& op, const LeaseState& state, LocalTime now,
                        std::vector<LeaseState>& into) const {
  LeaseState next = state;
  const auto become = [&](int owner) {
    next.owner = owner;
    into.push_back(next);
  };
  const bool can_forget = may_forget(state, op, now);
  switch (op.kind) {
    case Op::Kind::kGrant:
      if (state.owner == op.term || !reach(next, op.term, op, now)) return;
      prolong(op, next);
      into.push_back(next);
      return;
    case Op::Kind::kSeen:
      if (reach(next, term_of(op, state), op, now)) into.push_back(next);
      return;
    case Op::Kind::kNameless: {
      const TermOf* owner = owner_of(state);
      const auto unheard = owner == nullptr
                               ? history_.unheard_evict.end()
                               : history_.unheard_evict.find(std::pair(owner->id, owner->token));
      const bool evicted = unheard != history_.unheard_evict.end() && unheard->second <= now;
      if (state.owner == kUnknown || can_forget) next.end = kAlways;
      if (evicted || state.owner == kUnknown || can_forget) become(kEvicted);
      return;
    }
    case Op::Kind::kFree:
      if (can_be_free(state, now) || can_forget) become(kNobody);
      return;
    case Op::Kind::kRelease: {
      const bool is_owner = is_owned_by(state, op.id);
      if (is_owner) become(kNobody);
      // Of another term of this id it is, or of one that it is yet to get.
      next = state;
      const bool is_other = is_owner && op.token != 0 && op.token != owner_of(state)->token;
      if (is_other || (!is_owner && history_.has_later_term(op.id, state.made)))
        into.push_back(next);
      return;
    }
    case Op::Kind::kEvict:
      if (state.owner == op.term) return become(op.frees ? kNobody : kEvicted);
      into.push_back(next);
      return;
  }
}

}  // namespace simba::torture
