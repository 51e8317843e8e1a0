#include "torture/history.h"

#include <algorithm>
#include <functional>
#include <map>

namespace simba::torture {
namespace {

// All records with one token that count for a rule: what is needed of them is two of their ends.
struct Evidence {
  LocalTime first_end = LocalTime::max();
  LocalTime last_begin = LocalTime::min();
  int first_client = 0, last_client = 0;
};
using ByToken = std::map<Token, Evidence, std::greater<>>;  // the largest first

template <class Counts>
ByToken gather(const History& history, const Counts& counts) {
  ByToken found;
  for (const Lane& lane : history.lanes) {
    for (const Record& record : lane.records) {
      if (!counts(record)) continue;
      Evidence& evidence = found[record.token];
      if (record.after < evidence.first_end) {
        evidence.first_end = record.after;
        evidence.first_client = lane.client;
      }
      if (record.before > evidence.last_begin) {
        evidence.last_begin = record.before;
        evidence.last_client = lane.client;
      }
    }
  }
  return found;
}

std::string by(int client, Token token) {
  return "client " + std::to_string(client) + " with token " + std::to_string(token);
}

// From the largest token down: what a smaller one did must have begun before the earliest end among
// the larger ones.
void check_order(const History& history, const ByToken& found, const std::string& promise,
                 const std::string& did, std::vector<Violation>& into) {
  const Evidence* earliest = nullptr;
  Token earliest_token = 0;
  for (const auto& [token, evidence] : found) {
    if (earliest != nullptr && evidence.last_begin > earliest->first_end) {
      const auto late = std::chrono::duration_cast<std::chrono::microseconds>(evidence.last_begin -
                                                                              earliest->first_end);
      into.push_back({promise,
                      history.mutex + ": " + by(evidence.last_client, token) + did + ' ' +
                          std::to_string(late.count()) + " us after " +
                          by(earliest->first_client, earliest_token),
                      evidence.last_begin});
    }
    if (earliest == nullptr || evidence.first_end < earliest->first_end) {
      earliest = &evidence;
      earliest_token = token;
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
      into.push_back(
          {"P2",
           history.mutex + ": " + by(lane.client, record.token) + " has the token of another term",
           record.before});
    }
  }
}

}  // namespace

std::vector<Violation> check(const History& history, std::size_t most) {
  using Kind = Record::Kind;
  std::vector<Violation> found;
  const auto in_ttl = [](const Record& r) { return r.kind == Kind::kLook && r.is_in_ttl; };
  const auto owner = [](const Record& r) { return r.kind == Kind::kLook && r.is_owner; };
  const auto applied = [](const Record& r) { return r.kind == Kind::kFenced; };
  check_order(history, gather(history, in_ttl), "P1", " is in its ttl", found);
  check_order(history, gather(history, owner), "P1b", " is owner", found);
  check_tokens(history, found);
  check_order(history, gather(history, applied), "P3", " has written", found);
  if (found.size() > most) found.resize(most);
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
