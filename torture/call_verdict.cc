#include "torture/call_verdict.h"

#include <algorithm>

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

// What guarantees.md allows: forward steps of the store's clock, and its rate.
nanoseconds allowance(const Plan& plan) {
  return std::max<nanoseconds>(50ms, nanoseconds{plan.lease()} / 100);
}

std::vector<Period> periods(const Outcome& outcome, FaultKind kind, nanoseconds more) {
  std::vector<Period> found;
  for (const Fault& fault : outcome.faults) {
    if (fault.kind == kind) found.push_back({fault.begin, fault.end + more});
  }
  return found;
}

// What was forgotten had been granted before the kill, so its lease is over one lease after it.
std::vector<Period> forgetful(const Plan& plan, const Outcome& outcome) {
  std::vector<Period> found;
  for (const Fault& fault : outcome.faults) {
    const bool was_killed = fault.kill.begin <= fault.kill.end;
    if (fault.kind == FaultKind::kFailover && was_killed)
      found.push_back({fault.kill.begin, fault.kill.end + plan.lease()});
  }
  return found;
}

}  // namespace

LeaseRules lease_rules(const Plan& plan, const Outcome& outcome, bool forgets) {
  const StoreRules& store = outcome.rules;
  LeaseRules rules;
  rules.allowance = allowance(plan);
  rules.queues = store.queues;
  if (forgets) rules.forgets = forgetful(plan, outcome);
  if (store.may_forget_release) {
    // By then its lease is over, also where the clock was set back meanwhile (by a third at most).
    const nanoseconds longest = plan.lease() + plan.lease() / 3;
    rules.revives = periods(outcome, FaultKind::kServerKill, longest);
    // What was not on the disk was not sent to the standby either.
    const auto failovers = periods(outcome, FaultKind::kFailover, longest);
    rules.revives.insert(rules.revives.end(), failovers.begin(), failovers.end());
    if (!store.is_ours) rules.revives = {{LocalTime::min(), LocalTime::max()}};
  }
  for (const Fault& fault : outcome.faults) {
    if (fault.kind == FaultKind::kClockStep) rules.steps.push_back({fault.begin, fault.by});
  }
  return rules;
}

std::vector<Call> explainable(const CallHistory& history, const Plan& plan,
                              const Outcome& outcome) {
  const StoreRules& store = outcome.rules;
  const bool at_any_time = !(store.is_ours && store.is_old_after_failover_only);
  const auto failovers = periods(outcome, FaultKind::kFailover, kOldestRead + plan.lease());
  std::vector<Call> calls = until(history.calls, history.cut);
  for (Call& call : calls) {
    if (call.is_granted()) continue;
    const nanoseconds age =
        call.kind == Call::Kind::kObserve ? store.old_question : store.old_refusal;
    const bool may_be_old =
        at_any_time || std::any_of(failovers.begin(), failovers.end(), [&](const Period& period) {
          return period.begin <= call.after && call.before <= period.end;
        });
    if (may_be_old) call.age = age;
  }
  return calls;
}

void judge_calls(const Plan& plan, const Outcome& outcome, Verdict& verdict) {
  for (const CallHistory& history : outcome.calls) {
    const std::vector<Call> calls = explainable(history, plan, outcome);
    verdict.calls.noted += calls.size();
    verdict.calls.is_cut = verdict.calls.is_cut || history.is_cut;
    ++(calls.empty() ? verdict.calls.missing : verdict.calls.mutexes);
    if (calls.empty()) continue;
    Order order = find_order(calls, lease_rules(plan, outcome, false));
    if (order.verdict == Order::Verdict::kNone && outcome.forgets) {
      order = find_order(calls, lease_rules(plan, outcome, true));
      if (order.verdict == Order::Verdict::kFound) ++verdict.calls.forgotten;
    }
    if (order.verdict == Order::Verdict::kNotDecided) ++verdict.calls.undecided;
    if (order.verdict != Order::Verdict::kNone) continue;
    verdict.violations.push_back(
        {"LIN",
         history.mutex + ": no order of these calls is that of a lease: " +
             describe(order.culprits, calls, outcome.began),
         order.culprits.empty() ? outcome.began : order.culprits.back().after});
  }
}

std::string calls_text(const Verdict& verdict) {
  const Verdict::Calls& calls = verdict.calls;
  const std::string missing =
      "of " + std::to_string(calls.missing) + " mutexes NO CALL WAS NOTED DOWN, nothing is shown";
  if (calls.mutexes == 0) return calls.missing == 0 ? "of no mutex" : missing;
  const auto broken = static_cast<std::size_t>(
      std::count_if(verdict.violations.begin(), verdict.violations.end(),
                    [](const Violation& violation) { return violation.promise == "LIN"; }));
  std::string text = "of " + std::to_string(calls.mutexes) + " mutexes, " +
                     std::to_string(calls.noted) + " calls to the store: ";
  text += broken == 0 ? "linearizable" : std::to_string(broken) + " NOT LINEARIZABLE";
  if (calls.forgotten > 0) {
    text += ", " + std::to_string(calls.forgotten) + " only as a failover forgot what it had said";
  }
  if (calls.undecided > 0) {
    text += ", " + std::to_string(calls.undecided) + " NOT DECIDED: the search was given up";
  }
  if (calls.missing > 0) text += "; " + missing;
  if (calls.is_cut) text += "; a log was full, what came after it was not noted down";
  return text;
}

}  // namespace simba::torture
