#include "torture/error_verdict.h"

#include <algorithm>
#include <map>
#include <utility>

namespace simba::torture {
namespace {

std::string how(const Trouble& trouble) {
  const std::string kind(word_of(trouble.errc));
  switch (trouble.origin) {
    case Trouble::Origin::kCall:
      return " asked the store, and the answer was the error '" + kind + "'";
    case Trouble::Origin::kThrown:
      return " was thrown the error '" + kind + "'";
    case Trouble::Origin::kLine:
      return " was told in the log of an error";
  }
  return "";
}

std::string describe(const Trouble& first, int times) {
  const std::string often = times == 1 ? "" : ", the first of " + std::to_string(times) + " times";
  return "client " + std::to_string(first.client) + how(first) + often + ": " + first.text;
}

bool is_denial(const Trouble& trouble) {
  return trouble.origin != Trouble::Origin::kLine && trouble.errc == Errc::kDenied;
}

// A line of the log that repeats the error of a call.
bool repeats(const Trouble& line, const Trouble& error) {
  constexpr std::size_t kEnough = 200;  // bytes: texts are cut, and those of lines begin with more
  return line.origin == Trouble::Origin::kLine &&
         line.text.find(error.text.substr(0, kEnough)) != std::string::npos;
}

// What somebody else can have done to the server.
bool is_explained(const Trouble& trouble, const Outcome& outcome) {
  if (!outcome.rules.denies_while_it_only_reads || outcome.rules.is_ours) return false;
  const std::vector<Trouble>& all = outcome.errors.troubles;
  return is_denial(trouble) || std::any_of(all.begin(), all.end(), [&](const Trouble& other) {
           return is_denial(other) && repeats(trouble, other);
         });
}

}  // namespace

std::string_view word_of(Errc errc) {
  switch (errc) {
    case Errc::kUnreachable:
      return "unreachable";
    case Errc::kDenied:
      return "denied";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kMisconfigured:
      return "misconfigured";
    case Errc::kMisuse:
      return "misuse";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kReplaced:
      return "replaced";
  }
  return "unknown";
}

void judge_errors(const Outcome& outcome, Verdict& verdict) {
  verdict.errors = outcome.errors.counts;
  std::map<std::pair<Trouble::Origin, Errc>, std::size_t> places;
  std::vector<std::pair<const Trouble*, int>> firsts;
  for (const Trouble& trouble : outcome.errors.troubles) {
    if (is_explained(trouble, outcome)) continue;
    const auto [at, is_new] = places.try_emplace({trouble.origin, trouble.errc}, firsts.size());
    if (is_new) firsts.emplace_back(&trouble, 0);
    ++firsts.at(at->second).second;
  }
  for (const auto& [first, times] : firsts) {
    verdict.violations.push_back({"error", describe(*first, times), first->at});
  }
}

std::string describe(const Trouble& trouble) { return describe(trouble, 1); }

std::string errors_text(const Verdict& verdict) {
  std::string text;
  for (const Errc errc : kAllErrcs) {
    const std::uint64_t times = verdict.errors.at(static_cast<std::size_t>(errc));
    if (times == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(times) + ' ' + std::string(word_of(errc));
  }
  return text.empty() ? "none" : text;
}

}  // namespace simba::torture
