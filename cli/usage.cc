#include "cli/usage.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace simba::cli {
namespace {

// Insertions, deletions, replacements and swaps of neighbours between two words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string> known) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t steps = distance(word, candidate);
    if (steps >= least || steps >= candidate.size()) continue;
    least = steps;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::string_view best = nearest(word, known);
  if (best.empty()) return "; see";
  return "; did you mean '" + std::string(best) + "'? See";
}

}  // namespace simba::cli
