#include "torture/attack.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "torture/call_verdict.h"
#include "torture/error_verdict.h"
#include "torture/telling.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr nanoseconds kStep = 1ms;
constexpr int kMostAmbushesInCalm = 5;
// A server that was started again is left alone for a while, or nobody would ever own anything.
constexpr nanoseconds kServerRest = 3s;
// So long others may take to agree on who leads now.
constexpr nanoseconds kElection = 60s;

}  // namespace

Attack::Attack(const Plan& plan, const Target& target)
    : plan_(plan),
      target_(target),
      dice_(plan.seed),
      crowd_(plan, target),
      kinds_{FaultKind::kKill, FaultKind::kKill, FaultKind::kStop, FaultKind::kStop,
             FaultKind::kStopInWindow},
      is_struck_(static_cast<std::size_t>(plan.clients)),
      is_cut_(static_cast<std::size_t>(plan.clients)),
      ambush_(plan, crowd_, is_struck_, outcome_.faults) {
  if (target.network) {
    kinds_.insert(kinds_.end(), {FaultKind::kDelay, FaultKind::kStall, FaultKind::kCut,
                                 FaultKind::kReset, FaultKind::kMute});
  }
  if (target.server) {
    kinds_.push_back(target.server->has_heir ? FaultKind::kFailover : FaultKind::kServerKill);
  }
  outcome_.forgets = target.forgets;
  outcome_.rules = target.rules;
  if (target.step_clock)
    kinds_.insert(kinds_.end(), {FaultKind::kClockStep, FaultKind::kClockStep});
  outcome_.possible = {kinds_.begin(), kinds_.end()};
}

void Attack::watch(nanoseconds every, std::function<void(const Crowd&)> look) {
  watch_every_ = every;
  watch_ = std::move(look);
}

Outcome Attack::run(const std::string& until_broken) {
  plan_.save();
  outcome_.began = BootClock::now();
  for (int client = 0; client < plan_.clients; ++client) crowd_.start(client);
  try {
    await_owners(outcome_.began);
    if (!has_owners(outcome_.began)) throw std::runtime_error(nobody_owns());
    attack(BootClock::now() + plan_.length, until_broken);
    calm();
    for (const std::string& trouble : crowd_.end()) note_end(trouble);
  } catch (const Ended& ended) {
    note_end(ended.what());
    outcome_.is_cut_short = true;
    outcome_.calm_since = outcome_.owners_killed = BootClock::now();
  }
  outcome_.ended = BootClock::now();
  outcome_.histories = crowd_.histories();
  outcome_.calls = crowd_.calls();
  outcome_.errors = crowd_.errors();
  outcome_.stalls = heartbeat_.stalls();
  outcome_.is_overfull = crowd_.is_overfull();
  return std::move(outcome_);
}

std::string Attack::nobody_owns() const {
  const std::string text = "nobody owned a mutex, before any fault";
  const ErrorHistory errors = crowd_.errors();
  return errors.troubles.empty() ? text : text + "; " + describe(errors.troubles.front());
}

void Attack::note_end(const std::string& what) {
  outcome_.bad_ends.push_back({"end", what, BootClock::now()});
}

void Attack::pass(LocalTime until) {
  do {
    keep_going();
    std::this_thread::sleep_for(kStep);
  } while (BootClock::now() < until);
}

void Attack::keep_going() {
  // Whoever waits for us meanwhile (a client to go on, a server to come back) is not to blame.
  const LocalTime now = BootClock::now();
  if (last_round_ != LocalTime{})
    outcome_.held_up = std::max<nanoseconds>(outcome_.held_up, now - last_round_);
  last_round_ = now;
  ambush_.step();
  for (int client = 0; client < plan_.clients; ++client) crowd_.check(client);
  while (!agenda_.empty() && agenda_.begin()->first <= BootClock::now()) {
    const auto action = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    action();
  }
  if (BootClock::now() < watch_due_) return;
  watch_due_ = BootClock::now() + watch_every_;
  watch_(crowd_);
}

nanoseconds Attack::span(double least, double most) {
  return nanoseconds{static_cast<nanoseconds::rep>(
      dice_.between(least, most) * static_cast<double>(nanoseconds{plan_.lease()}.count()))};
}

void Attack::later(nanoseconds span, std::function<void()> action) {
  agenda_.emplace(BootClock::now() + span, std::move(action));
}

void Attack::attack(LocalTime until, const std::string& until_broken) {
  if (watch_) watch_due_ = BootClock::now();
  // First of all and without any other fault, so that it succeeds.
  lay_ambush();
  while (ambush_.is_laid() && BootClock::now() < until) {
    pass(BootClock::now() + 10ms);
  }
  // And a failover, however long the others take to agree.
  if (target_.server && target_.server->has_heir) {
    const LocalTime before = BootClock::now();
    force(FaultKind::kFailover);
    while (server_is_down_) pass(BootClock::now() + 10ms);
    until += BootClock::now() - before;
  }
  // So far that nobody can overlook it: a clock is seen to be off once in every run.
  if (target_.step_clock) step_clock(-nanoseconds{plan_.lease()} / 3);
  std::vector<FaultKind> first = others_shuffled();
  while (!first.empty() || BootClock::now() < until) {
    if (first.empty()) {
      strike(kinds_.at(dice_.below(kinds_.size())), 1);
    } else {
      force(first.back());
      first.pop_back();
    }
    pass(std::min(until, BootClock::now() + span(plan_.least_rest, plan_.most_rest)));
    if (!until_broken.empty() && is_broken(until_broken)) {
      outcome_.is_cut_short = true;
      return;
    }
  }
}

// What can be done and was not yet.
std::vector<FaultKind> Attack::others_shuffled() {
  std::vector<FaultKind> kinds;
  for (const FaultKind kind : outcome_.possible) {
    const bool is_done = std::any_of(outcome_.faults.begin(), outcome_.faults.end(),
                                     [kind](const Fault& fault) { return fault.kind == kind; });
    if (is_done || kind == FaultKind::kStopInWindow) continue;
    const auto at = static_cast<std::ptrdiff_t>(dice_.below(kinds.size() + 1));
    kinds.insert(kinds.begin() + at, kind);
  }
  return kinds;
}

// All is mended, everybody is there, and each mutex finds an owner. Then the last fault: the owners
// die and do not come back, and each mutex finds another.
void Attack::calm() {
  watch_due_ = LocalTime::max();
  // What was killed follows whoever leads by now: it must not come back before somebody does.
  while (server_is_down_ && target_.server->has_heir) pass(BootClock::now() + 10ms);
  while (!agenda_.empty()) {
    const auto action = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    action();
  }
  ambush_.end();
  crowd_.mend();
  if (target_.server) target_.server->await_ready();
  outcome_.calm_since = outcome_.owners_killed = BootClock::now();
  for (Fault& fault : outcome_.faults) fault.end = std::min(fault.end, outcome_.calm_since);
  if (outcome_.is_cut_short) return;
  await_owners(outcome_.calm_since);
  if (!has_owners(outcome_.calm_since)) return;  // that is the verdict
  for (int tries = 0; lost() == 0 && tries < kMostAmbushesInCalm; ++tries) {
    lay_ambush();
    while (ambush_.is_laid()) pass(BootClock::now() + 10ms);
    pass(BootClock::now() + 100ms);  // for the write
  }
  kill_owners();
  outcome_.owners_killed = BootClock::now();
  await_owners(outcome_.owners_killed);
}

// --- what is done --------------------------------------------------------------------------------

// What the dice need not choose must come all the same, or a run says nothing about it. So this
// waits for whom it can be done to, and for the server; what never came fails the verdict.
void Attack::force(FaultKind kind) {
  constexpr double kShort = 0.2;  // so that all of them fit into a short run
  const LocalTime patience = BootClock::now() + kElection;
  while (!strike(kind, kShort) && BootClock::now() < patience) pass(BootClock::now() + 50ms);
}

bool Attack::strike(FaultKind kind, double share) {
  switch (kind) {
    case FaultKind::kKill:
    case FaultKind::kStop:
      return strike_client(kind, share);
    case FaultKind::kStopInWindow:
      lay_ambush();
      return true;
    case FaultKind::kServerKill:
      return kill_server();
    case FaultKind::kFailover:
      return fail_over();
    case FaultKind::kClockStep:
      return step_clock(harmless_step());
    default:
      return strike_network(kind, share);
  }
}

bool Attack::strike_client(FaultKind kind, double share) {
  const bool kills = kind == FaultKind::kKill;
  const int spared = kills ? plan_.survivors : 0;
  const auto at = static_cast<std::size_t>(spared) +
                  dice_.below(static_cast<std::uint64_t>(plan_.clients - spared));
  const int client = static_cast<int>(at);
  const nanoseconds length = kills ? span(0, 0.5) : span(0.1, 3 * share);
  if (is_struck_.at(at)) return false;
  is_struck_.at(at) = true;
  const LocalTime now = BootClock::now();
  outcome_.faults.push_back({kind, client, now, now + length});
  kills ? crowd_.kill(client) : crowd_.stop(client);
  later(length, [this, client, at, kills] {
    kills ? crowd_.start(client) : crowd_.go_on(client);
    is_struck_.at(at) = false;
  });
  return true;
}

bool Attack::strike_network(FaultKind kind, double share) {
  const auto at = dice_.below(static_cast<std::uint64_t>(plan_.clients));
  const int client = static_cast<int>(at);
  const nanoseconds length = kind == FaultKind::kReset ? 0ns : span(0.1, 2 * share);
  const auto by = std::chrono::duration_cast<milliseconds>(span(0.005, 0.1));
  if (is_cut_.at(at)) return false;
  is_cut_.at(at) = true;
  const LocalTime now = BootClock::now();
  outcome_.faults.push_back({kind, client, now, now + length});
  servers::Relay& relay = crowd_.relay(client);
  if (kind == FaultKind::kDelay) relay.delay(by);
  if (kind == FaultKind::kStall) relay.stall();
  if (kind == FaultKind::kCut) relay.cut();
  if (kind == FaultKind::kReset) relay.reset();
  if (kind == FaultKind::kMute) relay.mute();
  later(length, [this, client, at] {
    crowd_.relay(client).mend();
    crowd_.relay(client).delay(0ms);
    is_cut_.at(at) = false;
  });
  return true;
}

bool Attack::kill_server() {
  const nanoseconds length = span(0, 0.7);
  const LocalTime now = BootClock::now();
  if (server_is_down_ || now < server_rests_until_ || !target_.server->is_ready()) return false;
  server_is_down_ = true;
  outcome_.faults.push_back({FaultKind::kServerKill, -1, now, now + length});
  target_.server->kill();
  later(length, [this] { end_server_fault(); });
  return true;
}

void Attack::end_server_fault() {
  target_.server->launch();
  server_is_down_ = false;
  server_rests_until_ = BootClock::now() + std::max<nanoseconds>(kServerRest, 2 * plan_.lease());
}

bool Attack::fail_over() {
  const LocalTime now = BootClock::now();
  if (server_is_down_ || now < server_rests_until_ || !target_.server->is_ready()) return false;
  server_is_down_ = true;
  const std::size_t fault = outcome_.faults.size();
  outcome_.faults.push_back({FaultKind::kFailover, -1, now, now + kElection});
  const auto kill = [this, fault] {
    const LocalTime before = BootClock::now();
    target_.server->kill();
    outcome_.faults.at(fault).kill = {before, BootClock::now()};
    await_heir(fault, BootClock::now() + kElection);
  };
  if (target_.server->hold_back && dice_.chance(0.5)) {
    target_.server->hold_back();
    later(span(0.02, 0.4), kill);
  } else {
    kill();
  }
  return true;
}

void Attack::await_heir(std::size_t fault, LocalTime until) {
  later(100ms, [this, fault, until] {
    const bool has_heir = target_.server->has_heir();
    if (!has_heir && BootClock::now() < until) return await_heir(fault, until);
    if (has_heir) ++outcome_.failovers_seen;
    end_server_fault();
    outcome_.faults.at(fault).end = BootClock::now();
  });
}

// Of each mutex whoever wrote last. One client stays in any case.
void Attack::kill_owners() {
  constexpr std::size_t kLatest = 1;
  const LocalTime now = BootClock::now();
  int left = plan_.clients;
  for (const History& history : crowd_.histories(kLatest)) {
    const Lane* owner = nullptr;
    for (const Lane& lane : history.lanes) {
      if (lane.records.empty()) continue;
      if (owner == nullptr || lane.records.back().after > owner->records.back().after)
        owner = &lane;
    }
    if (owner == nullptr || is_struck_.at(static_cast<std::size_t>(owner->client)) || left <= 1)
      continue;
    is_struck_.at(static_cast<std::size_t>(owner->client)) = true;
    --left;
    crowd_.kill(owner->client);
    outcome_.faults.push_back({FaultKind::kKill, owner->client, now, now});
  }
}

// Within what is promised to be harmless: forward less than the margin in a lease, back any.
nanoseconds Attack::harmless_step() {
  const nanoseconds margin = std::max<nanoseconds>(50ms, plan_.lease() / 100);
  return dice_.chance(0.5) ? dice_.between(margin / 10, margin * 8 / 10) : -span(0.01, 0.3);
}

bool Attack::step_clock(nanoseconds by) {
  const LocalTime now = BootClock::now();
  if (now < clock_rests_until_) return false;
  clock_rests_until_ = now + 2 * nanoseconds{plan_.lease()};
  clock_offset_ += by;
  outcome_.faults.push_back({FaultKind::kClockStep, -1, now, now, by});
  target_.step_clock(clock_offset_);
  if (sees_step(by)) ++outcome_.steps_seen;
  return true;
}

// The server's answer was given between two looks at our own clock: it is as far off as it was told
// to be, and cannot be as far off as it was before. An answer that took too long says neither.
bool Attack::sees_step(nanoseconds by) const {
  constexpr int kReadings = 5;
  constexpr nanoseconds kCoarse = 2ms;  // some tell whole milliseconds
  if (server_is_down_ || !target_.server->is_ready()) return false;
  for (int reading = 0; reading < kReadings; ++reading) {
    const nanoseconds before = std::chrono::system_clock::now().time_since_epoch();
    const auto said = target_.read_clock();
    const nanoseconds after = std::chrono::system_clock::now().time_since_epoch();
    const auto can_be = [&](nanoseconds off) {
      return before + off - kCoarse <= *said && *said <= after + off + kCoarse;
    };
    if (!said) continue;
    if (!can_be(clock_offset_)) return false;
    if (!can_be(clock_offset_ - by)) return true;
  }
  return false;
}

void Attack::lay_ambush() {
  ambush_.lay(static_cast<int>(dice_.below(static_cast<std::uint64_t>(plan_.mutexes))));
}

// --- what is seen --------------------------------------------------------------------------------

bool Attack::is_broken(const std::string& promise) {
  if (promise == "LIN") {
    outcome_.calls = crowd_.calls();
    Verdict verdict;
    judge_calls(plan_, outcome_, verdict);
    return !verdict.violations.empty();
  }
  if (promise == "error") {
    outcome_.errors = crowd_.errors();
    Verdict verdict;
    judge_errors(outcome_, verdict);
    return !verdict.violations.empty();
  }
  for (const History& history : crowd_.histories()) {
    if (promise == "P4" && is_told_late(history)) return true;
    for (const Violation& violation : check(history)) {
      if (violation.promise == promise) return true;
    }
  }
  return false;
}

bool Attack::is_told_late(const History& history) const {
  const std::vector<LateTelling> found = late_tellings(history, heartbeat_.stalls());
  return std::any_of(found.begin(), found.end(), [](const LateTelling& telling) {
    return telling.kind != LateTelling::Kind::kStalled;
  });
}

// Longer than the bound, and than what the machine stood still: a mutex that has no owner by then
// is dead, and by how much one is late says something.
void Attack::await_owners(LocalTime since) {
  LocalTime now = since;
  const auto is_patient = [&] {
    now = BootClock::now();
    return now - since - stood_still(heartbeat_.stalls(), since, now) < plan_.bound() + 5s;
  };
  while (!has_owners(since) && is_patient()) pass(BootClock::now() + 10ms);
}

bool Attack::has_owners(LocalTime since) const {
  constexpr std::size_t kLatest = 64;  // an owner looks all the time
  for (const History& history : crowd_.histories(kLatest)) {
    if (!takeover(history, since)) return false;
  }
  return true;
}

std::uint64_t Attack::lost() const {
  std::uint64_t count = 0;
  for (const History& history : crowd_.histories()) count += writes(history).lost;
  return count;
}

}  // namespace simba::torture
