#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "torture/outcome.h"

namespace simba::torture {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames{
    "kill", "stop",  "stop before a write", "delay",       "stall",
    "cut",  "reset", "replies dropped",     "server kill", "clock step"};

double seconds(nanoseconds span) { return std::chrono::duration<double>(span).count(); }

std::string print(nanoseconds span) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds(span));
  return text.data();
}

// The longest time in which nobody owned the mutex, between its first term and its last.
nanoseconds longest_gap(const History& history) {
  std::vector<Span> all = spans(history);
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  nanoseconds longest{0};
  LocalTime owned_until = all.empty() ? LocalTime{} : all.front().end;
  for (const Span& span : all) {
    longest = std::max(longest, nanoseconds{span.begin - owned_until});
    owned_until = std::max(owned_until, span.end);
  }
  return longest;
}

std::string_view name_of(Verdict::Timing timing) {
  switch (timing) {
    case Verdict::Timing::kInTime:
      return "in time";
    case Verdict::Timing::kLate:
      return "late";
    case Verdict::Timing::kVoid:
      return "void";
    case Verdict::Timing::kNotJudged:
      return "not judged";
  }
  return "";
}

std::array<int, kFaultKinds> count(const std::vector<Fault>& faults) {
  std::array<int, kFaultKinds> counts{};
  for (const Fault& fault : faults) ++counts.at(static_cast<std::size_t>(fault.kind));
  return counts;
}

std::string faults_text(const Outcome& outcome) {
  const auto counts = count(outcome.faults);
  std::string text;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts.at(kind) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts.at(kind)) + ' ' +
            std::string(kNames.at(kind));
  }
  return text.empty() ? "none" : text;
}

std::string timing_text(const Outcome& outcome, const Verdict& verdict) {
  if (outcome.is_cut_short) return "the run was cut short";
  const std::string found = verdict.without_owner > 0 ? "no owner for " : "an owner within ";
  return found + print(verdict.longest_takeover) + " after the faults (bound " +
         print(verdict.bound) + ')';
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Verdict judge(const Plan& plan, const Outcome& outcome) {
  Verdict verdict;
  verdict.bound = plan.bound();
  verdict.is_overfull = outcome.is_overfull;
  for (const History& history : outcome.histories) {
    for (Violation& violation : check(history)) verdict.violations.push_back(std::move(violation));
    const Writes written = writes(history);
    verdict.writes.fenced += written.fenced;
    verdict.writes.refused += written.refused;
    verdict.writes.unfenced += written.unfenced;
    verdict.writes.lost += written.lost;
    verdict.terms += spans(history).size();
    verdict.looks += looks(history);
    verdict.longest_gap = std::max(verdict.longest_gap, longest_gap(history));
    if (outcome.is_cut_short) continue;
    for (const LocalTime since : {outcome.calm_since, outcome.owners_killed}) {
      const auto took = takeover(history, since);
      if (!took) ++verdict.without_owner;
      verdict.longest_takeover =
          std::max(verdict.longest_takeover, took.value_or(outcome.ended - since));
    }
  }
  verdict.sees_the_bug = verdict.writes.lost > 0;
  verdict.clean_stalls = static_cast<std::size_t>(
      std::count_if(outcome.stalls.begin(), outcome.stalls.end(),
                    [&](const Stall& stall) { return stall.at >= outcome.calm_since; }));
  if (outcome.is_cut_short) {
    verdict.timing = Verdict::Timing::kNotJudged;
  } else if (verdict.without_owner > 0 || verdict.longest_takeover > verdict.bound) {
    verdict.timing = verdict.clean_stalls > 0 ? Verdict::Timing::kVoid : Verdict::Timing::kLate;
  }
  return verdict;
}

std::string as_text(const Title& title, const Plan& plan, const Outcome& outcome,
                    const Verdict& verdict) {
  std::string text = title.store + ": " + (verdict.holds() ? "holds" : "BROKEN") + "\n";
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += "  " + std::string(name) +
            std::string(12 - std::min<std::size_t>(12, name.size()), ' ') + value + '\n';
  };
  for (const Violation& violation : verdict.violations) {
    line(violation.promise,
         violation.what + ", " + print(violation.at - outcome.began) + " after the start");
  }
  line("safety", verdict.violations.empty() ? "no promise broken" : "broken, see above");
  line("witness", "the unfenced register lost " + std::to_string(verdict.writes.lost) + " of " +
                      std::to_string(verdict.writes.unfenced) + " writes; the fenced one refused " +
                      std::to_string(verdict.writes.refused) +
                      (verdict.sees_the_bug ? "" : ": THE HARNESS IS BLIND, nothing is shown"));
  const std::string stalls = std::to_string(outcome.stalls.size()) + " stalls of the machine, " +
                             std::to_string(verdict.clean_stalls) + " of them after the faults";
  line("timing",
       std::string(name_of(verdict.timing)) + ": " + timing_text(outcome, verdict) + ", " + stalls);
  if (verdict.is_overfull) line("notebook", "FULL: not all was noted down; make the run shorter");
  line("run", std::to_string(plan.clients) + " clients, " + std::to_string(plan.mutexes) +
                  " mutexes, ttl " + std::to_string(plan.ttl.count()) + " ms, transition " +
                  std::to_string(plan.transition.count()) + " ms, " +
                  print(outcome.ended - outcome.began));
  line("", std::to_string(verdict.terms) + " terms, " + std::to_string(verdict.looks) +
               " looks, longest time without an owner " + print(verdict.longest_gap));
  line("faults", faults_text(outcome));
  for (const std::string& spared : title.spared) line("spared", spared);
  line("again", title.command);
  return text;
}

std::string as_json(const Title& title, const Plan& plan, const Outcome& outcome,
                    const Verdict& verdict) {
  nlohmann::ordered_json json{{"store", title.store},
                              {"holds", verdict.holds()},
                              {"seed", plan.seed},
                              {"seconds", seconds(outcome.ended - outcome.began)},
                              {"clients", plan.clients},
                              {"mutexes", plan.mutexes},
                              {"ttl_ms", plan.ttl.count()},
                              {"transition_ms", plan.transition.count()},
                              {"terms", verdict.terms},
                              {"looks", verdict.looks},
                              {"timing", name_of(verdict.timing)},
                              {"longest_takeover_s", seconds(verdict.longest_takeover)},
                              {"bound_s", seconds(verdict.bound)},
                              {"longest_gap_s", seconds(verdict.longest_gap)},
                              {"stalls", outcome.stalls.size()},
                              {"stalls_after_faults", verdict.clean_stalls},
                              {"unfenced_writes", verdict.writes.unfenced},
                              {"unfenced_lost", verdict.writes.lost},
                              {"fenced_writes", verdict.writes.fenced},
                              {"fenced_refused", verdict.writes.refused},
                              {"sees_the_bug", verdict.sees_the_bug}};
  const auto counts = count(outcome.faults);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    json["faults"][std::string(kNames.at(kind))] = counts.at(kind);
  }
  json["violations"] = nlohmann::json::array();
  for (const Violation& violation : verdict.violations) {
    json["violations"].push_back({{"promise", violation.promise},
                                  {"what", violation.what},
                                  {"after_s", seconds(violation.at - outcome.began)}});
  }
  json["spared"] = title.spared;
  json["command"] = title.command;
  return json.dump() + '\n';
}

}  // namespace simba::torture
