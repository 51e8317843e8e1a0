#include "simba/locker.h"

#include <atomic>
#include <functional>
#include <utility>

#include "core/bell.h"
#include "core/coded.h"
#include "core/fork.h"
#include "core/session.h"
#include "simba/contender_id.h"

namespace simba::inline v0 {
namespace {

using Clock = core::Bell::Clock;
using IfRefused = core::Engine::IfRefused;
using Inline = core::Engine::Inline;
using Phase = core::Contention::Phase;

constexpr Clock::time_point kForever = Clock::time_point::max();

Clock::time_point deadline_after(nanoseconds patience) {
  const Clock::time_point now = Clock::now();
  return patience < kForever - now ? now + patience : kForever;
}

}  // namespace

struct SimbaLocker::State {
  enum class Use { kFree, kBusy, kHeld };

  State(const Client& client, std::string mutex, const ContendOptions& options, std::string label);

  bool acquire(Clock::time_point until, const std::stop_token& stop);
  void release() noexcept;
  void release_soon() noexcept;
  void begin_use();
  // A try with the code of what kept it from being answered.
  bool unless_unanswered(std::error_code& error, const std::function<bool()>& acquires) const;
  LocalTime call_deadline(Clock::time_point until) const;

  const std::shared_ptr<core::Session> session;
  const std::shared_ptr<core::Bell> bell = std::make_shared<core::Bell>();
  const std::shared_ptr<core::Enrolled> who;
  std::atomic<Use> use{Use::kFree};

 private:
  bool contend(Clock::time_point until, const std::stop_token& stop);
  bool wait_for(Clock::time_point until, const std::stop_token& stop);
  LocalTime local_time(Clock::time_point until) const;
  bool is_idle() const { return engine().phase(*who) == Phase::kIdle; }
  core::Engine& engine() const { return session->engine(); }
};

SimbaLocker::State::State(const Client& client, std::string mutex, const ContendOptions& options,
                          std::string label)
    : session(client.session()), who([&] {
        core::Spec spec;
        spec.mutex = std::move(mutex);
        spec.label = label.empty() ? ContenderIdGenerator::host().generate() : std::move(label);
        spec.options = options;
        spec.goal = core::Goal::kOnce;
        spec.poke = [bell = bell] { bell->ring(); };
        return session->engine().enroll(std::move(spec));
      }()) {}

void SimbaLocker::State::begin_use() {
  Use expected = Use::kFree;
  if (use.compare_exchange_strong(expected, Use::kBusy)) return;
  throw Error(Errc::kMisuse, "the locker of '" + who->mutex() + "' is " +
                                 (expected == Use::kHeld ? "locked" : "being locked") +
                                 " already; it is not reentrant and serves one thread at a time");
}

bool SimbaLocker::State::acquire(Clock::time_point until, const std::stop_token& stop) {
  session->engine();  // says so in a forked child
  begin_use();
  bool acquired = false;
  try {
    acquired = contend(until, stop);
  } catch (...) {
    use = Use::kFree;
    throw;
  }
  use = acquired ? Use::kHeld : Use::kFree;
  return acquired;
}

bool SimbaLocker::State::contend(Clock::time_point until, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { bell->ring(); });
  const auto gives_up = [&] { return stop.stop_requested(); };
  while (!gives_up()) {
    const bool once = until != kForever && until <= Clock::now();
    const auto if_refused = once ? IfRefused::kGivesUp : IfRefused::kWaits;
    const Inline came_to = engine().start_inline(who, call_deadline(until), if_refused);
    if (came_to == Inline::kHeld) return true;
    if (came_to == Inline::kOver && if_refused == IfRefused::kGivesUp) return false;
    if (came_to != Inline::kBusy) return wait_for(until, stop);
    // A release that is still under way comes first.
    if (!bell->wait(until, [&] { return is_idle() || gives_up(); })) return false;
  }
  return false;
}

LocalTime SimbaLocker::State::local_time(Clock::time_point until) const {
  return until == kForever ? LocalTime::max() : engine().executor().now() + (until - Clock::now());
}

// One try takes as long as a call may; a timeout that is still running bounds it too.
LocalTime SimbaLocker::State::call_deadline(Clock::time_point until) const {
  return until > Clock::now() ? local_time(until) : LocalTime::max();
}

// True when the mutex is held and in its ttl: what comes too late to be used is given back.
bool SimbaLocker::State::wait_for(Clock::time_point until, const std::stop_token& stop) {
  core::Engine::OwnCalls calls(engine(), who);
  while (true) {
    core::Engine::Snapshot now;
    const auto settled = [&] {
      now = engine().snapshot(*who);
      return now.phase != Phase::kTrying || (now.trouble && !now.trouble->is_transient()) ||
             stop.stop_requested();
    };
    const auto has_work = [&] { return now.phase == Phase::kTrying && !stop.stop_requested(); };
    bool in_time = true;
    do {
      in_time = bell->wait(
          until, [&] { return settled() || calls.is_due(); },
          [&](int interrupt) { return calls.listen(interrupt, local_time(until)); });
    } while (in_time && has_work() && calls.make(call_deadline(until)));
    if (now.phase == Phase::kHolding && now.term->is_in_ttl()) return true;
    if (now.phase == Phase::kTrying) {
      engine().give_up(who);
      if (engine().phase(*who) != Phase::kIdle) continue;  // it was granted just then
      if (in_time && !stop.stop_requested()) throw Error(*now.trouble);
      return false;
    }
    engine().finish(who);
    if (!bell->wait(until, [&] { return is_idle() || stop.stop_requested(); }) ||
        stop.stop_requested()) {
      return false;
    }
    engine().start(who);
  }
}

void SimbaLocker::State::release() noexcept {
  Use held = Use::kHeld;
  if (session->is_forked() || !use.compare_exchange_strong(held, Use::kBusy)) return;
  try {
    if (engine().finish_inline(who) != Inline::kOver && !is_idle()) {
      bell->wait(deadline_after(who->machine.timing().call_deadline), [&] { return is_idle(); });
    }
  } catch (const std::exception& error) {
    session->log(LogLevel::kError, "unlocking '" + who->mutex() + "': " + error.what());
  }
  use = Use::kFree;
}

void SimbaLocker::State::release_soon() noexcept {
  Use held = Use::kHeld;
  if (session->is_forked() || !use.compare_exchange_strong(held, Use::kBusy)) return;
  try {
    engine().finish(who);
  } catch (const std::exception& error) {
    session->log(LogLevel::kError,
                 "'" + who->mutex() + "' is not given back before its lease ends: " + error.what());
  }
  use = Use::kFree;
}

bool SimbaLocker::State::unless_unanswered(std::error_code& error,
                                           const std::function<bool()>& acquires) const {
  const bool acquired = core::coded(error, acquires);
  if (acquired || error) return acquired;
  if (const auto trouble = engine().snapshot(*who).trouble) error = trouble->code();
  return false;
}

SimbaLocker::SimbaLocker(const Client& client, std::string mutex)
    : SimbaLocker(client, std::move(mutex), client.options().contend) {}

SimbaLocker::SimbaLocker(const Client& client, std::string mutex, const ContendOptions& options,
                         std::string contender_id)
    : state_(std::make_shared<State>(client, std::move(mutex), options, std::move(contender_id))) {}

SimbaLocker::~SimbaLocker() {
  if (!state_) return;
  state_->release();
  if (state_->session->is_forked()) core::leave_alone(std::move(state_));
}
SimbaLocker::SimbaLocker(SimbaLocker&&) noexcept = default;
SimbaLocker& SimbaLocker::operator=(SimbaLocker&& other) noexcept {
  if (state_) state_->release();
  state_ = std::move(other.state_);
  return *this;
}

void SimbaLocker::lock() { state_->acquire(kForever, {}); }
bool SimbaLocker::lock(const std::stop_token& stop) { return state_->acquire(kForever, stop); }
bool SimbaLocker::try_lock() { return state_->acquire(Clock::now(), {}); }
bool SimbaLocker::try_lock_for_ns(nanoseconds patience) {
  return state_->acquire(deadline_after(patience), {});
}
void SimbaLocker::unlock() noexcept { state_->release(); }
void SimbaLocker::unlock_soon() noexcept { state_->release_soon(); }

bool SimbaLocker::renew() { return renew_for(nanoseconds::max()); }
bool SimbaLocker::renew_for(nanoseconds patience) {
  core::Engine& engine = state_->session->engine();
  if (state_->use != State::Use::kHeld) return false;
  const LocalTime deadline = state_->call_deadline(deadline_after(patience));
  return engine.renew_inline(state_->who, deadline) == Inline::kHeld;
}

bool SimbaLocker::lock(std::error_code& error) {
  return core::coded(error, [this] {
    lock();
    return true;
  });
}

bool SimbaLocker::lock(const std::stop_token& stop, std::error_code& error) {
  return core::coded(error, [&] { return lock(stop); });
}

bool SimbaLocker::try_lock(std::error_code& error) {
  return state_->unless_unanswered(error, [this] { return try_lock(); });
}

bool SimbaLocker::try_lock_for_ns(nanoseconds patience, std::error_code& error) {
  return state_->unless_unanswered(error, [&] { return try_lock_for_ns(patience); });
}

bool SimbaLocker::renew(std::error_code& error) {
  return core::coded(error, [this] { return renew(); });
}

Term SimbaLocker::term() const {
  if (state_->session->is_forked()) return {};
  return Term(state_->session->engine().term(*state_->who));
}
bool SimbaLocker::is_owner() const { return term().is_owner(); }
bool SimbaLocker::is_in_ttl() const { return term().is_in_ttl(); }
Token SimbaLocker::token() const { return term().token(); }
std::stop_token SimbaLocker::lost() const { return term().lost(); }
const std::string& SimbaLocker::mutex() const { return state_->who->mutex(); }

}  // namespace simba::inline v0
