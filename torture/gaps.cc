#include "torture/gaps.h"

#include <algorithm>

namespace simba::torture {
namespace {

std::vector<Gap> gaps(const History& history) {
  std::vector<Span> all = spans(history);
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::vector<Gap> found;
  LocalTime owned_until = all.empty() ? LocalTime{} : all.front().end;
  for (const Span& span : all) {
    if (span.begin > owned_until)
      found.push_back({history.mutex, owned_until, span.begin - owned_until});
    owned_until = std::max(owned_until, span.end);
  }
  return found;
}

}  // namespace

Gap longest_gap(const std::vector<History>& histories) {
  std::vector<std::vector<Gap>> all;
  Gap longest;
  for (const History& history : histories) {
    for (const Gap& gap : all.emplace_back(gaps(history))) {
      if (gap.length > longest.length) longest = gap;
    }
  }
  const LocalTime midst = longest.begin + longest.length / 2;
  for (const std::vector<Gap>& of_one : all) {
    longest.together += std::any_of(of_one.begin(), of_one.end(), [&](const Gap& gap) {
      return gap.begin <= midst && midst <= gap.begin + gap.length;
    });
  }
  return longest;
}

}  // namespace simba::torture
