#include "torture/attack.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr nanoseconds kStep = 1ms;
constexpr int kMostAmbushesInCalm = 5;
// A server that was started again is left alone for a while, or nobody would ever own anything.
constexpr nanoseconds kServerRest = 3s;

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
  if (target.server) kinds_.push_back(FaultKind::kServerKill);
  if (target.step_clock)
    kinds_.insert(kinds_.end(), {FaultKind::kClockStep, FaultKind::kClockStep});
}

void Attack::watch(nanoseconds every, std::function<void(const Crowd&)> look) {
  watch_every_ = every;
  watch_ = std::move(look);
}

Outcome Attack::run(Until until) {
  plan_.save();
  outcome_.began = BootClock::now();
  for (int client = 0; client < plan_.clients; ++client) crowd_.start(client);
  await_owners(outcome_.began);
  if (!has_owners(outcome_.began))
    throw std::runtime_error("nobody owned a mutex, before any fault");
  attack(BootClock::now() + plan_.length, until == Until::kBroken);
  calm();
  crowd_.end();
  outcome_.ended = BootClock::now();
  outcome_.histories = crowd_.histories();
  outcome_.stalls = heartbeat_.stalls();
  outcome_.is_overfull = crowd_.is_overfull();
  return std::move(outcome_);
}

void Attack::pass(LocalTime until) {
  do {
    keep_going();
    std::this_thread::sleep_for(kStep);
  } while (BootClock::now() < until);
}

void Attack::keep_going() {
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

void Attack::attack(LocalTime until, bool ends_when_broken) {
  if (watch_) watch_due_ = BootClock::now();
  // First of all and without any other fault, so that it succeeds.
  lay_ambush();
  while (ambush_.is_laid() && BootClock::now() < until) {
    pass(BootClock::now() + 10ms);
  }
  while (BootClock::now() < until) {
    strike();
    pass(std::min(until, BootClock::now() + span(plan_.least_rest, plan_.most_rest)));
    if (ends_when_broken && is_broken()) {
      outcome_.is_cut_short = true;
      return;
    }
  }
}

// All is mended, everybody is there, and each mutex finds an owner. Then the last fault: the owners
// die and do not come back, and each mutex finds another.
void Attack::calm() {
  watch_due_ = LocalTime::max();
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

void Attack::strike() {
  const FaultKind kind = kinds_.at(dice_.below(kinds_.size()));
  switch (kind) {
    case FaultKind::kKill:
    case FaultKind::kStop:
      return strike_client(kind);
    case FaultKind::kStopInWindow:
      return lay_ambush();
    case FaultKind::kServerKill:
      return kill_server();
    case FaultKind::kClockStep:
      return step_clock();
    default:
      return strike_network(kind);
  }
}

void Attack::strike_client(FaultKind kind) {
  const bool kills = kind == FaultKind::kKill;
  const int spared = kills ? plan_.survivors : 0;
  const auto at = static_cast<std::size_t>(spared) +
                  dice_.below(static_cast<std::uint64_t>(plan_.clients - spared));
  const int client = static_cast<int>(at);
  const nanoseconds length = kills ? span(0, 0.5) : span(0.1, 3);
  if (is_struck_.at(at)) return;
  is_struck_.at(at) = true;
  const LocalTime now = BootClock::now();
  outcome_.faults.push_back({kind, client, now, now + length});
  kills ? crowd_.kill(client) : crowd_.stop(client);
  later(length, [this, client, at, kills] {
    kills ? crowd_.start(client) : crowd_.go_on(client);
    is_struck_.at(at) = false;
  });
}

void Attack::strike_network(FaultKind kind) {
  const auto at = dice_.below(static_cast<std::uint64_t>(plan_.clients));
  const int client = static_cast<int>(at);
  const nanoseconds length = kind == FaultKind::kReset ? 0ns : span(0.1, 2);
  const auto by = std::chrono::duration_cast<milliseconds>(span(0.005, 0.1));
  if (is_cut_.at(at)) return;
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
}

void Attack::kill_server() {
  const nanoseconds length = span(0, 0.7);
  const LocalTime now = BootClock::now();
  if (server_is_down_ || now < server_rests_until_ || !target_.server->is_ready()) return;
  server_is_down_ = true;
  outcome_.faults.push_back({FaultKind::kServerKill, -1, now, now + length});
  target_.server->kill();
  later(length, [this] {
    target_.server->launch();
    server_is_down_ = false;
    server_rests_until_ = BootClock::now() + std::max<nanoseconds>(kServerRest, 2 * plan_.lease());
  });
}

// One client stays in any case.
void Attack::kill_owners() {
  constexpr std::size_t kLatest = 1;
  const LocalTime now = BootClock::now();
  int left = plan_.clients;
  for (const History& history : crowd_.histories(kLatest)) {
    for (const Lane& lane : history.lanes) {
      const bool owns = !lane.records.empty() && now - lane.records.back().after < 100ms;
      const auto at = static_cast<std::size_t>(lane.client);
      if (!owns || is_struck_.at(at) || left <= 1) continue;
      is_struck_.at(at) = true;
      --left;
      crowd_.kill(lane.client);
      outcome_.faults.push_back({FaultKind::kKill, lane.client, now, now});
    }
  }
}

// Within what is promised to be harmless: forward less than the margin in a lease, back any.
void Attack::step_clock() {
  const nanoseconds margin = std::max<nanoseconds>(50ms, plan_.lease() / 100);
  const nanoseconds step =
      dice_.chance(0.5) ? dice_.between(margin / 10, margin * 8 / 10) : -span(0.01, 0.3);
  const LocalTime now = BootClock::now();
  if (now < clock_rests_until_) return;
  clock_rests_until_ = now + 2 * nanoseconds{plan_.lease()};
  clock_offset_ += step;
  outcome_.faults.push_back({FaultKind::kClockStep, -1, now, now});
  target_.step_clock(clock_offset_);
}

void Attack::lay_ambush() {
  ambush_.lay(static_cast<int>(dice_.below(static_cast<std::uint64_t>(plan_.mutexes))));
}

// --- what is seen --------------------------------------------------------------------------------

bool Attack::is_broken() const {
  for (const History& history : crowd_.histories()) {
    if (!check(history, 1).empty()) return true;
  }
  return false;
}

void Attack::await_owners(LocalTime since) {
  const LocalTime patience = since + plan_.bound() + 5s;  // by how much it is late says something
  while (!has_owners(since) && BootClock::now() < patience) pass(BootClock::now() + 10ms);
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
