#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torture/linear.h"

namespace simba::torture {

inline constexpr int kNoTerm = -1;
inline constexpr LocalTime kNever = LocalTime::max(), kAlways = LocalTime::min();

// One thing that happened at an instant of its own.
struct Op {
  enum class Kind { kGrant, kSeen, kNameless, kFree, kRelease, kEvict };
  Kind kind{};
  LocalTime before{}, after{};
  int term = kNoTerm;      // of a grant, an owner that was seen, an eviction
  std::uint64_t id = 0;    // who asked; of an owner seen without a token: the owner
  Token token = 0;         // of a release
  nanoseconds lease{};     // of a grant: what was promised
  bool takes = false;      // of a grant: a take
  bool frees = false;      // of an eviction
  std::size_t waived = 0;  // of a grant: claims of this id that may have prolonged it unheard
};

struct TermOf {
  Token token = 0;
  std::uint64_t id = 0;
  // From then on a take of this id, that it has heard nothing of, may have made it.
  LocalTime unheard_from = kNever;
  LocalTime first_asked = kNever;
  nanoseconds longest{};  // lease that was asked for
};

// The calls of a mutex, as the search for an order needs them. Refers to the rules.
struct LeaseHistory {
  LeaseHistory(const std::vector<Call>& calls, const LeaseRules& lease_rules);

  const TermOf& term(int index) const { return terms[static_cast<std::size_t>(index)]; }
  bool has_later_term(std::uint64_t id, std::size_t made) const {
    const auto last = last_term.find(id);
    return last != last_term.end() && last->second >= static_cast<int>(made);
  }

  const LeaseRules& rules;
  std::vector<Op> ops;
  std::vector<TermOf> terms;  // by token
  std::unordered_map<std::uint64_t, int> last_term;
  std::unordered_map<std::uint64_t, LocalTime> unheard_release;  // the earliest
  std::map<std::pair<std::uint64_t, Token>, LocalTime> unheard_evict, unheard_free;

 private:
  void name_terms(const std::vector<Call>& calls);
  void find_makers(const std::vector<Call>& calls);
  void add(const Call& call);
  void add_answer(const Call& call);
  void add_unheard(const Call& call);
  int find(std::uint64_t id, Token token) const;

  std::unordered_map<std::uint64_t, std::vector<LocalTime>> unheard_claims_;
};

}  // namespace simba::torture
