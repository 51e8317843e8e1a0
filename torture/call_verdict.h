#pragma once

#include "torture/outcome.h"

namespace simba::torture {

// Adds to `verdict` what the calls to the store show: "LIN" where those of a mutex have no order.
void judge_calls(const Plan& plan, const Outcome& outcome, Verdict& verdict);

// By what rules the calls are judged. With `forgets`, a failover may take back what was
// acknowledged.
LeaseRules lease_rules(const Plan& plan, const Outcome& outcome, bool forgets);
// As an order has to explain them: what may be old happened earlier.
std::vector<Call> explainable(const CallHistory& history, const Plan& plan, const Outcome& outcome);

// For people.
std::string calls_text(const Verdict& verdict);

}  // namespace simba::torture
