#include "torture/lease_history.h"

#include <algorithm>
#include <tuple>

namespace simba::torture {

LeaseHistory::LeaseHistory(const std::vector<Call>& calls, const LeaseRules& lease_rules)
    : rules(lease_rules) {
  name_terms(calls);
  find_makers(calls);
  for (const Call& call : calls) add(call);
}

void LeaseHistory::name_terms(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    if (call.answer != Call::Answer::kOwned || call.owner_token == 0) continue;
    terms.push_back({call.owner_token, call.owner, kNever, kNever, {}});
  }
  const auto key = [](const TermOf& term) { return std::pair(term.token, term.id); };
  std::sort(terms.begin(), terms.end(),
            [&](const TermOf& a, const TermOf& b) { return key(a) < key(b); });
  terms.erase(std::unique(terms.begin(), terms.end(),
                          [&](const TermOf& a, const TermOf& b) { return key(a) == key(b); }),
              terms.end());
  for (std::size_t i = 0; i < terms.size(); ++i) last_term[terms[i].id] = static_cast<int>(i);
}

// Each take makes one term at most, so the second term of an id that it has heard nothing of needs
// a second take.
void LeaseHistory::find_makers(const std::vector<Call>& calls) {
  std::unordered_map<std::uint64_t, std::vector<LocalTime>> makers;
  std::vector<bool> is_heard(terms.size());
  for (const Call& call : calls) {
    if (!call.is_contending() || call.answer == Call::Answer::kBlocked) continue;
    const bool is_unheard = call.answer == Call::Answer::kNone;
    if (is_unheard) unheard_claims_[call.id].push_back(call.before);
    const bool waits = rules.queues && !call.is_granted();
    if (call.kind == Call::Kind::kTake && (is_unheard || waits))
      makers[call.id].push_back(call.before);
    if (!call.is_granted()) continue;
    const auto at = static_cast<std::size_t>(find(call.id, call.owner_token));
    if (call.kind == Call::Kind::kTake) is_heard[at] = true;
    terms[at].first_asked = std::min(terms[at].first_asked, call.before);
    terms[at].longest = std::max(terms[at].longest, call.lease);
  }
  for (auto& [id, times] : makers) std::sort(times.begin(), times.end());
  for (auto& [id, times] : unheard_claims_) std::sort(times.begin(), times.end());
  std::unordered_map<std::uint64_t, std::size_t> used;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto found = makers.find(terms[i].id);
    if (found == makers.end()) continue;
    std::size_t& next = used[terms[i].id];
    if (next < found->second.size()) terms[i].unheard_from = found->second[next];
    if (!is_heard[i]) ++next;
  }
}

int LeaseHistory::find(std::uint64_t id, Token token) const {
  const auto at = std::lower_bound(
      terms.begin(), terms.end(), std::pair(token, id),
      [](const TermOf& term, const auto& key) { return std::pair(term.token, term.id) < key; });
  const bool is_there = at != terms.end() && at->token == token && at->id == id;
  return is_there ? static_cast<int>(at - terms.begin()) : kNoTerm;
}

void LeaseHistory::add(const Call& call) {
  if (call.answer == Call::Answer::kBlocked) return;
  if (call.answer == Call::Answer::kNone) return add_unheard(call);
  Op op;
  op.before = call.before;
  op.after = call.after;
  op.id = call.id;
  op.token = call.token;
  const bool evicts = call.kind == Call::Kind::kEvict || call.kind == Call::Kind::kEvictFree;
  if (call.kind == Call::Kind::kRelease) {
    op.kind = Op::Kind::kRelease;
    ops.push_back(op);
  } else if (evicts) {
    op.kind = Op::Kind::kEvict;
    op.term = find(call.id, call.token);
    op.frees = call.kind == Call::Kind::kEvictFree;
    if (op.term != kNoTerm) ops.push_back(op);
  }
  if (call.kind != Call::Kind::kRelease) add_answer(call);
}

void LeaseHistory::add_answer(const Call& call) {
  Op op;
  op.before = call.before - call.age;
  op.after = call.after;
  op.id = call.id;
  if (call.answer == Call::Answer::kFree) {
    op.kind = Op::Kind::kFree;
  } else if (call.answer == Call::Answer::kNameless) {
    op.kind = Op::Kind::kNameless;
  } else {
    op.kind = call.is_granted() ? Op::Kind::kGrant : Op::Kind::kSeen;
    op.term = find(call.owner, call.owner_token);
    op.takes = call.kind == Call::Kind::kTake;
    op.lease = std::min(call.lease, call.left);  // who granted less is taken at its word
    if (op.term == kNoTerm) op.id = call.owner;
    // Of whom no token is ever told, nothing is known that could be compared.
    if (op.term == kNoTerm && !last_term.contains(call.owner)) return;
    const auto unheard = unheard_claims_.find(call.id);
    if (op.kind == Op::Kind::kGrant && unheard != unheard_claims_.end()) {
      const auto& times = unheard->second;
      op.waived = static_cast<std::size_t>(
          std::upper_bound(times.begin(), times.end(), call.after) - times.begin());
    }
  }
  ops.push_back(op);
}

void LeaseHistory::add_unheard(const Call& call) {
  const auto note = [&](auto& into, const auto& key) {
    const auto [it, is_new] = into.try_emplace(key, call.before);
    it->second = std::min(it->second, call.before);
  };
  if (call.kind == Call::Kind::kRelease) note(unheard_release, call.id);
  if (call.kind == Call::Kind::kEvict) note(unheard_evict, std::pair(call.id, call.token));
  if (call.kind == Call::Kind::kEvictFree) note(unheard_free, std::pair(call.id, call.token));
}

}  // namespace simba::torture
