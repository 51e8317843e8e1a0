#include "torture/history.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace simba::torture {
namespace {

struct Who {
  int client = 0;
  Token token = 0;
};
std::string by(const Who& who) {
  return "client " + std::to_string(who.client) + " with token " + std::to_string(who.token);
}

// All records with one rank that count for a rule: what is needed of them is some of their ends.
struct Evidence {
  LocalTime first_begin = LocalTime::max(), first_end = LocalTime::max();
  LocalTime last_begin = LocalTime::min();
  Who first, last;
};
template <class Rank>
using ByRank = std::map<Rank, Evidence, std::greater<>>;  // the largest first

// `rank_of` says where a record stands; none: it does not count for the rule.
template <class Rank, class RankOf>
ByRank<Rank> gather(const History& history, const RankOf& rank_of) {
  ByRank<Rank> found;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      const std::optional<Rank> rank = rank_of(record);
      if (!rank) continue;
      Evidence& evidence = found[*rank];
      evidence.first_begin = std::min(evidence.first_begin, record.before);
      if (record.after < evidence.first_end) {
        evidence.first_end = record.after;
        evidence.first = {lane.client, record.token};
      }
      if (record.before > evidence.last_begin) {
        evidence.last_begin = record.before;
        evidence.last = {lane.client, record.token};
      }
    }
  }
  return found;
}

// From the largest rank down: what a smaller one did must have begun before the earliest end among
// the larger ones.
template <class Rank>
void check_order(const History& history, const ByRank<Rank>& found, const std::string& promise,
                 const std::string& did, std::vector<Violation>& into) {
  const Evidence* earliest = nullptr;
  for (const auto& [rank, evidence] : found) {
    if (earliest != nullptr && evidence.last_begin > earliest->first_end) {
      const auto late = std::chrono::duration_cast<std::chrono::microseconds>(evidence.last_begin -
                                                                              earliest->first_end);
      into.push_back({promise,
                      history.mutex + ": " + by(evidence.last) + did + ' ' +
                          std::to_string(late.count()) + " us after " + by(earliest->first),
                      evidence.last_begin, earliest->first_end, evidence.last.token,
                      evidence.first_begin});
    }
    if (earliest == nullptr || evidence.first_end < earliest->first_end) earliest = &evidence;
  }
}

// When each term was first seen to own.
std::map<std::uint64_t, LocalTime> begins(const History& history) {
  std::map<std::uint64_t, LocalTime> found;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      if (record.kind != Record::Kind::kLook || !record.is_owner) continue;
      const auto [it, is_new] = found.try_emplace(record.term, record.before);
      it->second = std::min(it->second, record.before);
    }
  }
  return found;
}

// A client writes down one thing after the other.
void check_ends(const History& history, std::vector<Violation>& into) {
  for (const Lane& lane : history.lanes) {
    std::set<std::uint64_t> ended;
    for (const Record& record : lane.records) {
      if (record.kind != Record::Kind::kLook) continue;
      if (!record.is_owner) {
        ended.insert(record.term);
      } else if (ended.erase(record.term) > 0) {  // said once, and not at every look
        into.push_back(
            {"R4",
             history.mutex + ": " + by({lane.client, record.token}) + " owns again what had ended",
             record.before});
      }
    }
  }
}

// A client writes down a callback when it has ended. What a process did when it was killed is in no
// record; the next one begins anew.
void check_callbacks(const History& history, std::vector<Violation>& into) {
  using Kind = Record::Kind;
  for (const Lane& lane : history.lanes) {
    const Record* last = nullptr;
    for (const Record& record : lane.records) {
      if (record.kind != Kind::kAcquired && record.kind != Kind::kReleased) continue;
      const bool goes_on = last != nullptr && last->process == record.process;
      const bool is_next = goes_on
                               ? record.kind != last->kind && record.before >= last->after &&
                                     (record.kind == Kind::kAcquired || record.term == last->term)
                               : record.kind == Kind::kAcquired;
      if (!is_next) {
        const std::string name = record.kind == Kind::kAcquired ? "on_acquired" : "on_released";
        into.push_back({"P4",
                        history.mutex + ": " + name + " of " + by({lane.client, record.token}) +
                            " began when the other callback was due or under way",
                        record.before});
      }
      last = &record;
    }
  }
}

void check_tokens(const History& history, std::vector<Violation>& into) {
  std::map<Token, std::uint64_t> terms;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      if (record.kind != Record::Kind::kLook || !record.is_owner) continue;
      const auto [it, is_new] = terms.try_emplace(record.token, record.term);
      if (is_new || it->second == record.term) continue;
      it->second = record.term;
      into.push_back({"P2",
                      history.mutex + ": " + by({lane.client, record.token}) +
                          " has the token of another term",
                      record.before});
    }
  }
}

}  // namespace

std::vector<Violation> check(const History& history) {
  using Kind = Record::Kind;
  std::vector<Violation> found;
  const auto token_if = [](const Record& record, bool counts) {
    return record.kind == Kind::kLook && counts ? std::optional(record.token) : std::nullopt;
  };
  const auto in_ttl = [&](const Record& record) { return token_if(record, record.is_in_ttl); };
  const auto owner = [&](const Record& record) { return token_if(record, record.is_owner); };
  const auto applied = [first = begins(history)](const Record& record) {
    const auto begin = first.find(record.term);
    return record.kind == Kind::kFenced && begin != first.end() ? std::optional(begin->second)
                                                                : std::nullopt;
  };
  check_order(history, gather<Token>(history, in_ttl), "P1", " is in its ttl", found);
  check_order(history, gather<Token>(history, owner), "P1b", " is owner", found);
  check_tokens(history, found);
  check_order(history, gather<LocalTime>(history, applied), "P3", " has written", found);
  check_callbacks(history, found);
  check_ends(history, found);
  return found;
}

std::vector<Span> spans(const History& history) {
  std::map<std::pair<Token, int>, Span> found;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      if (record.kind != Record::Kind::kLook || !record.is_in_ttl) continue;
      const auto [it, is_new] =
          found.try_emplace({record.token, lane.client},
                            Span{lane.client, record.token, record.before, record.after});
      it->second.end = std::max(it->second.end, record.after);
    }
  }
  std::vector<Span> all;
  for (const auto& [key, span] : found) all.push_back(span);
  return all;
}

Writes writes(const History& history) {
  Writes all;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      switch (record.kind) {
        case Record::Kind::kLook:
        case Record::Kind::kAcquired:
        case Record::Kind::kReleased:
          break;
        case Record::Kind::kFenced:
          ++all.fenced;
          break;
        case Record::Kind::kRefused:
          ++all.refused;
          break;
        case Record::Kind::kUnfenced:
          ++all.unfenced;
          if (record.found > record.token) ++all.lost;
          break;
      }
    }
  }
  return all;
}

std::uint64_t looks(const History& history) {
  std::uint64_t count = 0;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) count += record.kind == Record::Kind::kLook ? 1 : 0;
  }
  return count;
}

std::optional<nanoseconds> takeover(const History& history, LocalTime since) {
  std::optional<nanoseconds> earliest;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      const bool counts = record.kind == Record::Kind::kLook && record.is_in_ttl;
      if (!counts || record.before < since) continue;
      const nanoseconds took = record.after - since;
      if (!earliest || took < *earliest) earliest = took;
    }
  }
  return earliest;
}

}  // namespace simba::torture
