// What must hold of who only observes: it never contends, what it is told is a chain of owners in
// the order of their tokens, and once the faults have ended it knows who owns.
#include "testing/schedule.h"

namespace simba::testing {
namespace {

using std::chrono::seconds;

constexpr nanoseconds kRarestPoll = seconds{5};

}  // namespace

void Schedule::on_sight(Actor& actor, const MutexState& state) {
  tell(actor.name, " sees ", state.after.id.empty() ? "nobody" : state.after.id, ", token ",
       std::to_string(state.after.token));
  if (state.is_acquired() || state.is_released() || state.is_owner())
    violate("P4", actor.name + " only observes, and was told that it owns");
  if (!state.is_changed() || state.before.id != actor.sight.id)
    violate("P4", actor.name + " was told of a step that does not follow the last one");
  // A fail-over brings back what was before.
  const bool forgets = sim_.options().kind == ModelKind::kForgetful;
  if (!forgets && !state.after.id.empty() && state.after.token < actor.highest_sight)
    violate("P2", actor.name + " was told of an owner that was superseded before");
  actor.highest_sight = std::max(actor.highest_sight, state.after.token);
  actor.sight = state.after;
}

void Schedule::check_observer(const Actor& actor) {
  if (actor.who->term || !actor.who->machine.wire_id().empty())
    violate("P4", actor.name + " only observes, and contends");
}

void Schedule::check_sights() {
  const nanoseconds bound =
      kRarestPoll + 3 * timing_.call_deadline + 2 * timing_.max_backoff + milliseconds{500};
  for (const auto& actor : actors_) {
    if (actor->goal != core::Goal::kObserve || !actor->who) continue;
    const Observation& row = this->row(actor->mutex);
    const std::string& sight = actor->who->audience->state.after.id;
    if (sight == (row.is_free() ? MutexOwner::none().id : row.owner.id)) {
      actor->wrong_since = kEnd;
    } else if (actor->wrong_since == kEnd) {
      actor->wrong_since = sim_.now();
    } else if (sim_.now() - actor->wrong_since > bound) {
      violate("P6", actor->name + " does not see who owns " + mutex_name(actor->mutex));
    }
  }
}

}  // namespace simba::testing
