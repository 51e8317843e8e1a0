#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "torture/call_verdict.h"
#include "torture/error_verdict.h"
#include "torture/outcome.h"
#include "torture/telling.h"

namespace simba::torture {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames{
    "kill",    "stop",  "stop before a write", "delay",       "stall",
    "cut",     "reset", "replies dropped",     "server kill", "clock step",
    "failover"};

double seconds(nanoseconds span) { return std::chrono::duration<double>(span).count(); }

std::string print(nanoseconds span) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds(span));
  return text.data();
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

std::string missing_text(const Verdict& verdict) {
  std::string text;
  for (const FaultKind kind : verdict.missing) {
    text += (text.empty() ? "; NO " : ", NO ") + std::string(to_string(kind));
  }
  return text.empty() ? text : text + ": nothing is shown";
}

std::string timing_text(const Outcome& outcome, const Verdict& verdict) {
  if (outcome.is_cut_short) return "the run was cut short";
  const std::string found = verdict.without_owner > 0 ? "no owner for " : "an owner within ";
  return found + print(verdict.longest_takeover) + " after the faults (bound " +
         print(verdict.bound) + ')';
}

std::string tellings_text(const Verdict::Tellings& tellings) {
  std::string text;
  if (tellings.late > 0) {
    text += ", " + std::to_string(tellings.late) + " stop requests came late, after up to " +
            print(tellings.longest) + " of running time";
  }
  if (tellings.stalled > 0) {
    text += ", " + std::to_string(tellings.stalled) +
            " stop requests were late while the machine stood still";
  }
  if (tellings.never > 0)
    text += ", " + std::to_string(tellings.never) + " stop requests never came";
  return text;
}

// Whose it was: of one mutex, of the store's (then many had none), of the machine's, or our own.
std::string gap_text(const Outcome& outcome, const Gap& gap) {
  const nanoseconds still = stood_still(outcome.stalls, gap.begin, gap.begin + gap.length);
  return "(" + gap.mutex + ", " + print(gap.begin - outcome.began) +
         " after the start: " + std::to_string(gap.together) + " of " +
         std::to_string(outcome.histories.size()) +
         " mutexes had none then; the machine stood still for " + print(still) +
         " of it), the harness itself was held up for " + print(outcome.held_up) + " at most";
}

// When it was first known of a term: it was seen, or the claim that it was granted was sent. Who is
// stopped just then looks at it later.
LocalTime first_known(const Violation& violation, const History& history, const Outcome& outcome) {
  LocalTime known = violation.first_seen;
  for (const CallHistory& calls : outcome.calls) {
    if (calls.mutex != history.mutex) continue;
    for (const Call& call : calls.calls) {
      if (call.is_granted() && call.owner_token == violation.superseded)
        known = std::min(known, call.before);
    }
  }
  return known;
}

// Two owners, and a failover can have forgotten the older one: the server that granted it was
// killed since then, the newer one was first seen after that, and the lease of the older one, which
// nobody could renew any more, was not over yet.
bool is_forgotten(const Violation& violation, const History& history, const Plan& plan,
                  const Outcome& outcome) {
  if (!outcome.forgets || !violation.promise.starts_with("P1")) return false;
  const LocalTime known = first_known(violation, history, outcome);
  return std::any_of(outcome.faults.begin(), outcome.faults.end(), [&](const Fault& fault) {
    return fault.kind == FaultKind::kFailover && known < fault.kill.end &&
           violation.since >= fault.kill.begin && violation.at <= fault.kill.end + plan.lease();
  });
}

void make_void(Verdict& verdict) {
  if (verdict.timing == Verdict::Timing::kInTime) verdict.timing = Verdict::Timing::kVoid;
}

// No more of a mutex and a promise than anybody reads: so one that is broken a thousand times hides
// no other, and neither does what is forgiven.
class Told {
 public:
  explicit Told(Verdict& verdict) : verdict_(verdict) {}
  void add(Violation violation) {
    constexpr int kMost = 5;
    if (++told_[violation.promise] <= kMost) verdict_.violations.push_back(std::move(violation));
  }

 private:
  Verdict& verdict_;
  std::map<std::string, int> told_;
};

void judge_safety(const History& history, const Plan& plan, const Outcome& outcome,
                  Verdict& verdict) {
  Told told(verdict);
  for (Violation& violation : check(history)) {
    if (is_forgotten(violation, history, plan, outcome)) {
      ++verdict.forgotten;
    } else {
      told.add(std::move(violation));
    }
  }
}

// P4: that somebody is told at all is a matter of safety, how soon one of time.
void judge_tellings(const History& history, const Outcome& outcome, Verdict& verdict) {
  Told never(verdict), late(verdict);
  Verdict::Tellings& tellings = verdict.tellings;
  for (LateTelling& telling : late_tellings(history, outcome.stalls)) {
    switch (telling.kind) {
      case LateTelling::Kind::kNever:
        ++tellings.never;
        never.add(std::move(telling.violation));
        break;
      case LateTelling::Kind::kStalled:
        ++tellings.stalled;
        make_void(verdict);
        break;
      case LateTelling::Kind::kLate:
        ++tellings.late;
        tellings.longest = std::max(tellings.longest, telling.running);
        verdict.timing = Verdict::Timing::kLate;
        late.add(std::move(telling.violation));
        break;
    }
  }
}

// P6: how long `history` was without an owner since then. What the machine stood still is no excuse
// for more than that.
void judge_time(const History& history, const Outcome& outcome, LocalTime since, const char* what,
                Verdict& verdict) {
  const auto took = takeover(history, since);
  const nanoseconds waited = took.value_or(outcome.ended - since);
  const nanoseconds excused = stood_still(outcome.stalls, since, since + waited);
  if (!took) ++verdict.without_owner;
  verdict.longest_takeover = std::max(verdict.longest_takeover, waited);
  if (took && waited <= verdict.bound) return;
  if (took && waited <= verdict.bound + excused) {
    make_void(verdict);
    return;
  }
  verdict.timing = Verdict::Timing::kLate;
  Violation late{"P6",
                 history.mutex +
                     (took ? ": nobody owned it for " : ": nobody owned it again, for ") +
                     print(waited) + " after " + what + ", of which the machine stood still for " +
                     print(excused),
                 since + verdict.bound};
  late.is_of_time = true;
  verdict.violations.push_back(std::move(late));
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Verdict judge(const Plan& plan, const Outcome& outcome) {
  Verdict verdict;
  verdict.bound = plan.bound();
  verdict.is_overfull = outcome.is_overfull;
  verdict.violations = outcome.bad_ends;
  const auto counts = count(outcome.faults);
  verdict.clock_steps = counts.at(static_cast<std::size_t>(FaultKind::kClockStep));
  verdict.steps_seen = outcome.steps_seen;
  verdict.failovers = counts.at(static_cast<std::size_t>(FaultKind::kFailover));
  verdict.failovers_seen = outcome.failovers_seen;
  for (const FaultKind kind : outcome.possible) {
    const bool is_missing = counts.at(static_cast<std::size_t>(kind)) == 0;
    if (is_missing && !outcome.is_cut_short) verdict.missing.push_back(kind);
  }
  for (const History& history : outcome.histories) {
    judge_safety(history, plan, outcome, verdict);
    judge_tellings(history, outcome, verdict);
    const Writes written = writes(history);
    verdict.writes.fenced += written.fenced;
    verdict.writes.refused += written.refused;
    verdict.writes.unfenced += written.unfenced;
    verdict.writes.lost += written.lost;
    verdict.terms += spans(history).size();
    verdict.looks += looks(history);
    if (outcome.is_cut_short) continue;
    judge_time(history, outcome, outcome.calm_since, "the faults", verdict);
    if (outcome.owners_killed > outcome.calm_since)
      judge_time(history, outcome, outcome.owners_killed, "the owners' death", verdict);
  }
  judge_calls(plan, outcome, verdict);
  judge_errors(outcome, verdict);
  verdict.longest_gap = longest_gap(outcome.histories);
  verdict.sees_the_bug = verdict.writes.lost > 0;
  verdict.clean_stalls = static_cast<std::size_t>(
      std::count_if(outcome.stalls.begin(), outcome.stalls.end(),
                    [&](const Stall& stall) { return stall.at >= outcome.calm_since; }));
  if (outcome.is_cut_short) verdict.timing = Verdict::Timing::kNotJudged;
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
  const bool is_safe = std::all_of(
      verdict.violations.begin(), verdict.violations.end(), [](const Violation& violation) {
        return violation.is_of_time || violation.promise == "end" || violation.promise == "error";
      });
  line("safety", is_safe ? "no promise broken" : "broken, see above");
  line("witness", "the unfenced register lost " + std::to_string(verdict.writes.lost) + " of " +
                      std::to_string(verdict.writes.unfenced) + " writes; the fenced one refused " +
                      std::to_string(verdict.writes.refused) +
                      (verdict.sees_the_bug ? "" : ": THE HARNESS IS BLIND, nothing is shown"));
  line("calls", calls_text(verdict));
  line("errors", errors_text(verdict));
  const std::string stalls = std::to_string(outcome.stalls.size()) + " stalls of the machine, " +
                             std::to_string(verdict.clean_stalls) + " of them after the faults";
  line("timing", std::string(name_of(verdict.timing)) + ": " + timing_text(outcome, verdict) +
                     ", " + stalls + tellings_text(verdict.tellings));
  if (verdict.clock_steps > 0) {
    line("clock", std::to_string(verdict.steps_seen) + " of " +
                      std::to_string(verdict.clock_steps) + " steps read back from the server" +
                      (verdict.clock_acts() ? "" : ": THEY DID NOT ACT, nothing is shown"));
  }
  if (verdict.failovers > 0) {
    std::string said = "after " + std::to_string(verdict.failovers_seen) + " of " +
                       std::to_string(verdict.failovers) + " another server led";
    if (outcome.forgets)
      said += "; what they forgot made two owners " + std::to_string(verdict.forgotten) + " times";
    line("failover", said + (verdict.fails_over() ? "" : ": NONE TOOK PLACE, nothing is shown"));
  }
  if (verdict.is_overfull) line("notebook", "FULL: not all was noted down; make the run shorter");
  line("run", std::to_string(plan.clients) + " clients, " + std::to_string(plan.mutexes) +
                  " mutexes, ttl " + std::to_string(plan.ttl.count()) + " ms, transition " +
                  std::to_string(plan.transition.count()) + " ms, " +
                  print(outcome.ended - outcome.began));
  line("", std::to_string(verdict.terms) + " terms, " + std::to_string(verdict.looks) +
               " looks, longest time without an owner " + print(verdict.longest_gap.length));
  line("", gap_text(outcome, verdict.longest_gap));
  line("faults", faults_text(outcome) + missing_text(verdict));
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
                              {"longest_gap_s", seconds(verdict.longest_gap.length)},
                              {"longest_gap_of", verdict.longest_gap.mutex},
                              {"longest_gap_together", verdict.longest_gap.together},
                              {"held_up_s", seconds(outcome.held_up)},
                              {"stalls", outcome.stalls.size()},
                              {"stalls_after_faults", verdict.clean_stalls},
                              {"late_stop_requests", verdict.tellings.late},
                              {"late_stop_requests_excused", verdict.tellings.stalled},
                              {"latest_stop_request_s", seconds(verdict.tellings.longest)},
                              {"missing_stop_requests", verdict.tellings.never},
                              {"unfenced_writes", verdict.writes.unfenced},
                              {"unfenced_lost", verdict.writes.lost},
                              {"fenced_writes", verdict.writes.fenced},
                              {"fenced_refused", verdict.writes.refused},
                              {"sees_the_bug", verdict.sees_the_bug},
                              {"clock_steps_seen", verdict.steps_seen},
                              {"failovers_seen", verdict.failovers_seen},
                              {"two_owners_forgotten", verdict.forgotten},
                              {"calls", verdict.calls.noted},
                              {"calls_mutexes", verdict.calls.mutexes},
                              {"calls_missing", verdict.calls.missing},
                              {"calls_undecided", verdict.calls.undecided},
                              {"calls_forgotten", verdict.calls.forgotten},
                              {"calls_cut", verdict.calls.is_cut}};
  for (const Errc errc : kAllErrcs) {
    json["errors"][std::string(word_of(errc))] = verdict.errors.at(static_cast<std::size_t>(errc));
  }
  const auto counts = count(outcome.faults);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    json["faults"][std::string(kNames.at(kind))] = counts.at(kind);
  }
  json["missing_faults"] = nlohmann::json::array();
  for (const FaultKind kind : verdict.missing) json["missing_faults"].push_back(to_string(kind));
  json["violations"] = nlohmann::json::array();
  for (const Violation& violation : verdict.violations) {
    json["violations"].push_back({{"promise", violation.promise},
                                  {"what", violation.what},
                                  {"after_s", seconds(violation.at - outcome.began)}});
  }
  json["spared"] = title.spared;
  json["command"] = title.command;
  // What a server said, cut, need not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace simba::torture
