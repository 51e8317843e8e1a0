#include "torture/linear.h"

#include <algorithm>

#include "torture/order_search.h"

namespace simba::torture {
namespace {

struct Found {
  Order::Verdict verdict{};
  LocalTime stuck_at{};
};

Found look(const std::vector<Call>& calls, const LeaseRules& rules) {
  const LeaseHistory history(calls, rules);
  OrderSearch search(history);
  const Order::Verdict verdict = search.run();
  return {verdict, search.stuck_at()};
}

// As if nobody had heard its answer: it allows all that it did, and more. False: it says nothing.
bool is_heard(const Call& call) {
  return call.answer != Call::Answer::kNone && call.answer != Call::Answer::kBlocked;
}

void mute(Call& call) {
  call.answer = call.kind == Call::Kind::kObserve ? Call::Answer::kBlocked : Call::Answer::kNone;
}

// Calls of which each is needed: without the answer of one, the others have an order.
std::vector<Call> culprits(std::vector<Call> calls, const LeaseRules& rules, LocalTime stuck_at) {
  constexpr std::size_t kMostTried = 64;  // one by one
  LeaseRules quick = rules;
  quick.most_work = rules.most_work / 10;
  const auto has_none = [&](const std::vector<Call>& some) {
    return look(some, quick).verdict == Order::Verdict::kNone;
  };
  std::erase_if(calls, [&](const Call& call) { return call.before > stuck_at; });
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.after < b.after; });
  std::vector<Call> found = calls;
  for (std::size_t kept = 4; kept < calls.size(); kept *= 2) {
    std::vector<Call> some = calls;
    std::size_t heard = 0;
    std::for_each(some.rbegin(), some.rend(), [&](Call& call) {
      if (is_heard(call) && ++heard > kept) mute(call);
    });
    if (!has_none(some)) continue;
    found = std::move(some);
    break;
  }
  std::size_t tried = 0;
  for (Call& call : found) {
    if (!is_heard(call)) continue;
    if (++tried > kMostTried) break;
    const Call::Answer answer = call.answer;
    mute(call);
    if (!has_none(found)) call.answer = answer;
  }
  std::erase_if(found, [](const Call& call) { return !is_heard(call); });
  std::sort(found.begin(), found.end(),
            [](const Call& a, const Call& b) { return a.before < b.before; });
  return found;
}

}  // namespace

Order find_order(const std::vector<Call>& calls, const LeaseRules& rules) {
  const Found found = look(calls, rules);
  Order order{found.verdict, {}};
  if (found.verdict == Order::Verdict::kNone)
    order.culprits = culprits(calls, rules, found.stuck_at);
  return order;
}

std::vector<Call> until(std::vector<Call> calls, LocalTime cut) {
  std::erase_if(calls, [cut](const Call& call) { return call.before >= cut; });
  for (Call& call : calls) {
    if (is_heard(call) && call.after >= cut) mute(call);
  }
  return calls;
}

}  // namespace simba::torture
