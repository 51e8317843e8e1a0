// The heartbeat: the engine's renewals, counted, and what is done at their pace.
#include <algorithm>
#include <utility>

#include "core/lock_manager.h"
#include "core/session.h"

namespace simba::core {
namespace {

constexpr milliseconds kCallTimeout{5000};
constexpr std::size_t kLookAt = 1'000;     // records in one beat
constexpr std::size_t kClearAtMost = 100;  // of these

thread_local bool is_in_beat = false;

}  // namespace

Heart::Heart(const Session& session, const TemporalAlignmentStrategy& strategy)
    : store_(static_cast<const OutsideCalls&>(session)),
      log_(session.options.log),
      interval_(strategy.beat_interval) {}

void Heart::log(LogLevel level, const std::string& line) const {
  if (log_) log_(level, line);
}

void Heart::listen() {
  listener_ = store_.engine().listen([weak = weak_from_this()](std::span<const Event> events) {
    if (const auto heart = weak.lock()) heart->hear(events);
  });
}

// On the thread that made the call: only counts. One batch of renewals may be a beat.
void Heart::hear(std::span<const Event> events) {
  bool is_due = false, ends = false;
  {
    const std::lock_guard lock(guard_);
    for (const Event& event : events) {
      ends |= event.kind == Event::Kind::kReleased || event.kind == Event::Kind::kRevoked;
      const bool renewed = event.kind == Event::Kind::kRenewed;
      if (!renewed && event.kind != Event::Kind::kRenewalFailed) continue;
      if (!holds(event.mutex)) continue;
      ++(renewed ? next_.renewed : next_.failed);
      is_due = true;
    }
    is_due = is_due && !beat_is_due_ && executor().now() >= next_beat_;
    beat_is_due_ |= is_due;
    is_due |= ends && is_end_due();
  }
  if (is_due) beat_elsewhere();
}

void Heart::beat_elsewhere() {
  executor().callback([weak = weak_from_this()] {
    if (const auto heart = weak.lock()) heart->beat();
  });
}

Beat Heart::beat() {
  if (is_in_beat) {
    Beat none;
    none.trouble.emplace(Errc::kMisuse, "beat() was called from on_beat: that beat is not over");
    return none;
  }
  const std::lock_guard one(beating_);
  is_in_beat = true;
  Beat beat;
  std::optional<std::string> prefix;
  {
    const std::lock_guard lock(guard_);
    beat = std::exchange(next_, {});
    end_is_told_ = false;
    prefix = prefix_;
  }
  try {
    measure(beat);
    if (prefix) clear(beat, *prefix);
  } catch (const Error& error) {
    beat.trouble = error;
  } catch (const std::exception& error) {
    beat.trouble.emplace(Errc::kCorrupt, error.what());
  }
  {
    const std::lock_guard lock(guard_);
    if (beat.time_delta) time_delta_ = beat.time_delta;
    // A little less than the interval: the renewal that sets off the next beat may come early.
    if (!store_.is_forked()) next_beat_ = executor().now() + interval_ * 9 / 10;
    beat_is_due_ = false;
  }
  tell(beat);
  is_in_beat = false;
  return beat;
}

void Heart::measure(Beat& beat) {
  using std::chrono::system_clock;
  std::string id;
  {
    const std::lock_guard lock(guard_);
    id = some_id_;
  }
  const auto before = system_clock::now();
  const StoreTime theirs = store_.observe(id, kCallTimeout).now;
  const auto ours = before + (system_clock::now() - before) / 2;
  beat.time_delta =
      theirs.time_since_epoch() - std::chrono::duration_cast<milliseconds>(ours.time_since_epoch());
}

// What is free but still names an owner: the name goes, the token stays. The end of the lease is
// not touched. Contenders of JVM versions before 3.3 keep id and token from term to term, so one
// that was expired when it was listed may own again by now: it loses its name, and nobody enters
// early.
//
// Each beat goes on behind the last name that the one before has looked at.
void Heart::clear(Beat& beat, const std::string& prefix) {
  if (store_.engine().store().traits().forgets_expired) return;
  if (!looked_up_to_.starts_with(prefix)) looked_up_to_.clear();  // it is another prefix now
  const std::vector<Listed> page = store_.list(prefix, looked_up_to_, kLookAt, kCallTimeout);
  std::size_t tried = 0;
  for (const Listed& each : page) {
    const MutexOwner& owner = each.observation.owner;
    const bool is_left = each.observation.is_free() && !owner.id.empty();
    if (is_left && tried == kClearAtMost) return;
    looked_up_to_ = each.mutex;  // one that cannot be cleared does not keep us from the others
    // What has no token is not of this library: whoever wrote it may use its id again by now.
    if (!is_left || owner.token == 0) continue;
    ++tried;
    const MutexOwner after =
        store_.evict(each.mutex, owner.id, owner.token, Eviction::kKeepLease, kCallTimeout).owner;
    // Else somebody has taken it since.
    if (after.id.empty() && after.token == owner.token) ++beat.cleared;
  }
  if (page.size() < kLookAt) looked_up_to_.clear();
}

void Heart::tell(const Beat& beat) {
  if (beat.trouble) {
    log(LogLevel::kWarning,
        std::string("the heartbeat goes on after trouble: ") + beat.trouble->what());
  }
  std::shared_ptr<const LockManager::BeatHook> hook;
  {
    const std::lock_guard lock(guard_);
    hook = hook_;
  }
  if (!hook || !*hook) return;
  try {
    (*hook)(beat);
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("on_beat threw: ") + error.what());
  } catch (...) {
    log(LogLevel::kError, "on_beat threw something that is no std::exception");
  }
}

void Heart::set_hook(LockManager::BeatHook hook) {
  const std::lock_guard lock(guard_);
  hook_ = std::make_shared<const LockManager::BeatHook>(std::move(hook));
}

void Heart::set_prefix(std::optional<std::string> prefix) {
  const std::lock_guard lock(guard_);
  prefix_ = std::move(prefix);
}

std::optional<milliseconds> Heart::time_delta() const {
  const std::lock_guard lock(guard_);
  return time_delta_;
}

void Heart::add(const std::string& id, const std::shared_ptr<Hold>& hold) {
  const std::lock_guard lock(guard_);
  sweep();
  some_id_ = id;
  holds_.emplace(id, hold);
}

// As Locks::claim does.
void Heart::sweep() {
  if (holds_.size() < sweep_at_) return;
  std::erase_if(holds_, [](const auto& each) {
    const auto hold = each.second.lock();
    return !hold || (hold->has_ended() && !hold->is_held());
  });
  sweep_at_ = std::max<std::size_t>(2 * holds_.size(), 64);
}

bool Heart::holds(std::string_view id) const {
  const auto [from, to] = holds_.equal_range(id);
  return std::any_of(from, to, [](const auto& each) {
    const auto hold = each.second.lock();
    return hold && hold->owns();
  });
}

bool Heart::holds_any() const {
  return std::any_of(holds_.begin(), holds_.end(), [](const auto& each) {
    const auto hold = each.second.lock();
    return hold && hold->owns();
  });
}

std::size_t Heart::held() const {
  const std::lock_guard lock(guard_);
  return static_cast<std::size_t>(std::count_if(holds_.begin(), holds_.end(), [](const auto& each) {
    const auto hold = each.second.lock();
    return hold && hold->owns();
  }));
}

// Of a beat that tells of threads that have ended: no lock is left whose renewal would set it off.
bool Heart::is_end_due() {
  return next_.released > 0 && !holds_any() && !std::exchange(end_is_told_, true);
}

// The next beat tells of it, or this one.
void Heart::count_ended_thread() noexcept try {
  bool is_due = false;
  {
    const std::lock_guard lock(guard_);
    ++next_.released;
    is_due = is_end_due();
  }
  if (is_due) beat_elsewhere();
} catch (const std::exception& error) {
  log(LogLevel::kError, std::string("a thread has ended, and nobody tells of it: ") + error.what());
}

}  // namespace simba::core
