#include <algorithm>
#include <utility>

#include "testing/schedule.h"

namespace simba::testing {
namespace {

using std::chrono::seconds;
using Phase = core::Contention::Phase;

constexpr nanoseconds kTakeoverSlack = milliseconds{500};
constexpr nanoseconds kRevokeBound = milliseconds{50};
constexpr nanoseconds kLargestStepBack = seconds{3};
constexpr nanoseconds kOrphanSlack = milliseconds{500};
constexpr nanoseconds kOrphanLook = milliseconds{100};  // between two, while none is known
constexpr nanoseconds kBlindPoll = seconds{1};
constexpr nanoseconds kRarestPoll = seconds{5};
constexpr nanoseconds kRounding = std::chrono::microseconds{1};  // of a clock that is reckoned back
const std::string kNoId;

}  // namespace

void Schedule::check() {
  for (Host& host : hosts_) {
    // It did nothing, and time changed nothing: all is as it was.
    if (host.process->steps() == host.steps && sim_.now() < host.next_look) continue;
    look_at(host);
  }
  if (std::exchange(owners_change_, false)) check_exclusion();
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    if (is_held_[mutex]) owned_at_[mutex] = sim_.now();
  }
  if (sim_.now() >= next_orphan_look_) check_orphans();
  if (is_calm()) {
    check_takeover();
    if (draw_.observers) check_sights();
  }
}

void Schedule::look_at(Host& host) {
  host.steps = host.process->steps();
  if (std::exchange(host.reopenings, host.process->reopenings()) != host.process->reopenings())
    check_replaced(host);
  host.next_look = World::Time::max();
  for (Actor* actor : host.actors) {
    const bool owned = actor->owns, was_in_ttl = actor->in_ttl;
    if (actor->who && actor->goal == core::Goal::kObserve) {
      check_observer(*actor);
    } else if (actor->who) {
      check_actor(*actor);
    }
    owners_change_ |= owned != actor->owns || was_in_ttl != actor->in_ttl;
    host.next_look = std::min(host.next_look, next_look(*actor));
  }
}

// The first answer that says so ends all terms of a client, with that reason.
void Schedule::check_replaced(Host& host) {
  for (const Actor* actor : host.actors) {
    if (!actor->who || !actor->who->term) continue;
    const core::TermRecord& term = *actor->who->term;
    if (term.is_owner()) violate("P1", actor->name + " owns in a store that was replaced");
    // Else its lease has run out just now.
    const bool owned =
        actor->owns && actor->term == actor->who->term && sim_.now() < actor->ends_at;
    if (owned && term.loss().reason != LossReason::kReplaced)
      violate("P4", actor->name + " was told another reason than that the store was replaced");
  }
}

bool Schedule::is_of_old_store(const Actor& actor) const {
  return actor.term->token <= last_of_old_store_;
}

// Who owns is looked at again when its clock reaches the end of its ttl and of its term; who has
// lost and has not heard of it after every event.
World::Time Schedule::next_look(Actor& actor) const {
  if (actor.lapsed && !actor.heard) return sim_.now();
  if (!actor.owns) return World::Time::max();
  const std::optional<core::TermTimes>& times = actor.who->machine.term();
  if (!times) return sim_.now();
  const LocalTime until = actor.in_ttl ? times->ttl_end : times->revoke_at;
  if (std::exchange(actor.owns_until, until) != until) {
    actor.ends_at = actor.process->clock().when(until) - kRounding;
  }
  return may_hold_on(actor) ? actor.ends_at : std::min(actor.ends_at, hold_ends(actor));
}

bool Schedule::may_hold_on(const Actor& actor) const {
  return contend_.max_hold == milliseconds{0} || actor.who->machine.phase() != Phase::kHolding;
}

// When somebody has held a mutex for longer than the maximum hold time, and must have noticed.
World::Time Schedule::hold_ends(const Actor& actor) const {
  const LocalTime began = actor.who->machine.term()->began;
  const World::Time end = actor.process->clock().when(began + contend_.max_hold);
  return std::max(end, actor.process->running_since()) + kRevokeBound;
}

void Schedule::check_actor(Actor& actor) {
  const core::Contention& machine = actor.who->machine;
  // Asked after every event: long ids are compared only when they may differ.
  const bool is_out_of_use = machine.phase() == Phase::kIdle && !actor.wire_id.empty();
  const bool may_differ = is_out_of_use || machine.attempt() != actor.attempt ||
                          machine.wire_id().size() != actor.wire_id.size();
  if (may_differ) note_wire_id(actor);
  if (actor.who->term != actor.term) {
    actor.term = actor.who->term;
    actor.lost = actor.goal == core::Goal::kKeep ? actor.term->lost() : std::stop_token{};
    actor.lapsed = actor.heard = false;
    ++result_.terms;
    tell(actor.name, " owns ", actor.term->mutex, ", token ", std::to_string(actor.term->token));
    if (is_of_old_store(actor) && actor.process->reopenings() > 0)
      violate("P1", actor.name + " took a grant of a store that it knew to be replaced");
    Token& highest = highest_[actor.mutex];
    if (actor.term->token <= highest && !is_of_old_store(actor)) {
      violate("P2",
              "token " + std::to_string(actor.term->token) + " after " + std::to_string(highest));
    }
    highest = std::max(highest, actor.term->token);
  }
  if (!actor.term) return;
  const bool owns = actor.owns = actor.term->is_owner();
  actor.in_ttl = owns && actor.term->is_in_ttl();
  if (owns && actor.lapsed) violate("P4", actor.name + " owns again under a term that was over");
  if (owns && machine.phase() == Phase::kIdle &&
      actor.term->loss().reason != LossReason::kAbandoned) {
    violate("P4", actor.name + " has stopped and still owns");
  }
  if (!owns && !actor.lapsed) {
    actor.lapsed = true;
    actor.lapsed_at = sim_.now();
    tell(actor.name, " does not own any more (", to_string(actor.term->loss().reason), ")");
  }
  if (actor.lapsed && !actor.heard) check_loss(actor);
  if (!may_hold_on(actor) && !actor.process->is_paused() && sim_.now() > hold_ends(actor))
    violate("P4", actor.name + " holds it for longer than it may");
}

void Schedule::check_loss(Actor& actor) {
  const SimNode& node = *actor.process;
  if (node.is_paused()) return;
  if (!actor.lost.stop_possible()) actor.lost = actor.term->lost();
  actor.heard = actor.lost.stop_requested();
  const World::Time since = std::max(actor.lapsed_at, node.running_since());
  if (!actor.heard && sim_.now() - since > kRevokeBound)
    violate("P4", actor.name + " was not told of its loss");
}

void Schedule::note_wire_id(Actor& actor) {
  const core::Contention& machine = actor.who->machine;
  actor.attempt = machine.attempt();
  // Who has given up keeps the id until it begins again, but does not use it any more.
  const std::string& in_use = machine.phase() == Phase::kIdle ? kNoId : machine.wire_id();
  if (in_use == actor.wire_id) return;
  // Work that nobody waited for any more keeps its lease: it runs out.
  const bool abandoned = actor.term && actor.term->wire_id == actor.wire_id &&
                         actor.term->loss().reason == LossReason::kAbandoned;
  if (!abandoned && !actor.who->left_work && !actor.wire_id.empty()) {
    hosts_[actor.node].dead_ids.insert(actor.wire_id);
    rows_[actor.mutex].is_known = false;
  }
  actor.wire_id = in_use;
}

void Schedule::check_exclusion() {
  std::array<const Actor*, 2> in_ttl{}, owner{};
  is_held_.fill(false);
  for (const auto& actor : actors_) {
    if (!actor->owns || is_of_old_store(*actor)) continue;
    const Actor*& other = owner[actor->mutex];
    if (other) violate("P1b", other->name + " and " + actor->name + " own");
    other = actor.get();
    if (!actor->in_ttl) continue;
    const Actor*& second = in_ttl[actor->mutex];
    if (second) violate("P1", second->name + " and " + actor->name + " are in their ttl");
    second = actor.get();
    is_held_[actor->mutex] = true;
  }
}

// Looked up again when something was written, or may have run out.
const Observation& Schedule::row(std::size_t mutex) {
  Row& row = rows_[mutex];
  ModelServer& server = sim_.server();
  const StoreTime now = server.now();
  const bool is_same = row.is_known && row.changes == server.changes() && now >= row.seen.now &&
                       now <= row.seen.owner.transition_at;
  if (!is_same) {
    row = {server.peek(mutex_name(mutex)), server.changes(), nullptr, false, true};
    for (Host& host : hosts_) {
      if (host.dead_ids.contains(row.seen.owner.id)) row.bereaved = &host;
    }
    // A fail-over brings back what was released before.
    const bool forgets = sim_.options().kind == ModelKind::kForgetful;
    row.is_revived = row.bereaved && (forgets || revived_ids_.contains(row.seen.owner.id));
  }
  row.seen.now = now;
  return row.seen;
}

bool Schedule::has_orphan(std::size_t mutex) {
  const Row& row = rows_[mutex];
  // Where waiters queue, time alone may bring another one to the front.
  const bool is_same = row.is_known && row.changes == sim_.server().changes() &&
                       sim_.options().kind != ModelKind::kSession;
  if (is_same && !row.bereaved) return false;
  return !this->row(mutex).is_free() && row.bereaved;
}

void Schedule::check_takeover() {
  // One lease from the last claim of a dead owner, which may have been on its way for another, by a
  // clock that was set back.
  const nanoseconds bound = 2 * timing_.lease() + kLargestStepBack + contend_.jitter.to +
                            2 * timing_.call_deadline + timing_.max_backoff + milliseconds{1500};
  // The model of a queue tells nobody that the first in line has ended: the next one asks.
  const bool is_queue = sim_.options().kind == ModelKind::kSession;
  const nanoseconds unseen = is_queue ? kRarestPoll : nanoseconds{0};
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    const nanoseconds gap = sim_.now() - owned_at_[mutex];
    result_.longest_gap = std::max(result_.longest_gap, gap);
    if (gap > bound)
      violate("P6", "nobody owns " + mutex_name(mutex) + " although the faults have ended");
    if (bereft_of_[mutex].empty()) continue;
    const Observation& row = this->row(mutex);
    if (row.owner.id != bereft_of_[mutex]) {
      bereft_of_[mutex].clear();
    } else if (row.now - row.owner.transition_at > contend_.jitter.to + kTakeoverSlack + unseen) {
      violate("P6", "nobody took " + mutex_name(mutex) + " over from its killed owner");
    }
  }
}

// What a process has given up is soon gone from the store, once nothing stands in its way: by its
// own follow-up, long before the lease has run out. Where a claim arrived that nobody waited for
// any more, somebody of that process has to ask who owns before it can know.
void Schedule::check_orphans() {
  const bool is_pushed = sim_.options().kind != ModelKind::kLease;
  const nanoseconds follow_up = 2 * timing_.call_deadline + timing_.max_backoff + kOrphanSlack;
  const nanoseconds hunt = follow_up + timing_.call_deadline + timing_.max_backoff +
                           (is_pushed ? kRarestPoll : kBlindPoll);
  next_orphan_look_ = sim_.now() + kOrphanLook;
  for (std::size_t mutex = 0; mutex < draw_.mutexes; ++mutex) {
    if (!has_orphan(mutex)) {
      orphan_since_[mutex] = kEnd;
      continue;
    }
    next_orphan_look_ = sim_.now();  // whatever comes between is seen
    if (!is_in_reach(rows_[mutex], mutex)) {
      orphan_since_[mutex] = kEnd;
    } else if (orphan_since_[mutex] == kEnd) {
      orphan_since_[mutex] = sim_.now();
    } else if (sim_.now() - orphan_since_[mutex] > (rows_[mutex].is_revived ? hunt : follow_up)) {
      violate("P6", "a given up " + row(mutex).owner.id + " still stands in the store");
    }
  }
}

// Whether the process that gave up its owner could give that back now.
bool Schedule::is_in_reach(const Row& row, std::size_t mutex) {
  const SimNode& process = *row.bereaved->process;
  if (process.is_paused() || process.is_cut() || !sim_.is_server_up()) return false;
  if (!sim_.weather().is_fair() || sim_.server().is_blocked(mutex_name(mutex))) return false;
  return !row.is_revived || is_asked_for(*row.bereaved, mutex);
}

bool Schedule::is_asked_for(const Host& host, std::size_t mutex) {
  return std::any_of(host.actors.begin(), host.actors.end(), [&](const Actor* actor) {
    return actor->mutex == mutex && actor->who && actor->who->machine.heeds_hints();
  });
}

// Whether this take came when its sender had an answer to it, or has given up.
void Schedule::note_revival(const Claim& claim) {
  const auto tries = [&](const auto& actor) {
    return actor->who && actor->who->machine.is_waiting() &&
           actor->who->machine.wire_id() == claim.wire_id;
  };
  if (sim_.is_copy() || std::none_of(actors_.begin(), actors_.end(), tries))
    revived_ids_.emplace(claim.wire_id);
}

// P5: a write changes nothing of a running term but the one it names. P4: and it gives no term back
// whose work has not returned.
void Schedule::check_write(const Claim& claim, bool is_release, const Observation& before,
                           const Observation& after) {
  if (claim.wire_id.empty()) violate("P5", "somebody who only observes has written");
  if (is_release) check_work_of(claim);
  const bool named = before.owner.is_owner(claim.wire_id) &&
                     (claim.token == 0 || claim.token == before.owner.token);
  // In a queue it stands behind others at first.
  const bool may_stand = sim_.options().kind == ModelKind::kSession || before.owner != after.owner;
  const bool is_take = !is_release && !claim.renews();
  if (is_take && may_stand && !before.owner.is_owner(claim.wire_id)) note_revival(claim);
  const bool is_grant =
      is_take && before.owner != after.owner && after.owner.is_owner(claim.wire_id);
  if (is_grant && is_grant_awaited_ && !is_calm()) replace_after_grant();
  if (before.is_free() || before.owner == after.owner || named) return;
  violate("P5", std::string(is_release       ? "a release"
                            : claim.renews() ? "a renewal"
                                             : "a take") +
                    " of " + std::string(claim.wire_id) + " changed the term of " +
                    before.owner.id);
}

void Schedule::check_work_of(const Claim& claim) {
  for (const auto& actor : actors_) {
    if (actor->works_for.empty() || actor->works_for != claim.wire_id) continue;
    // In the midst of a write the server cannot be asked what violate() would tell.
    sim_.violate("P4", actor->name + " was released while its work still runs");
  }
}

void Schedule::violate(const char* promise, const std::string& what) {
  if (sim_.violation()) return;
  sim_.violate(promise, what);
  for (std::size_t mutex = 0; mutex < draw_.mutexes && std::string(promise) != "P5"; ++mutex) {
    const Observation row = sim_.server().peek(mutex_name(mutex));
    tell("  the store: " + mutex_name(mutex) +
         (row.is_free() ? " is free" : " is held by " + row.owner.id));
  }
  for (const auto& actor : actors_) {
    if (!actor->who) continue;
    tell("  " + actor->name + ": phase " +
         std::to_string(static_cast<int>(actor->who->machine.phase())) + ", " +
         actor->who->machine.wire_id());
  }
}

}  // namespace simba::testing
