#include <utility>

#include "core/coded.h"
#include "core/fork.h"
#include "core/lock_manager.h"
#include "core/session.h"

namespace simba::inline v0 {
namespace {

using IfLost = core::Hold::IfLost;

}  // namespace

struct LockManager::Lock::State : std::enable_shared_from_this<State> {
  State(std::shared_ptr<core::Locks> its_locks, std::string its_id,
        const ContendOptions& its_options)
      : locks(std::move(its_locks)),
        id(std::move(its_id)),
        options(its_options),
        creator(core::this_thread_number()) {}

  std::shared_ptr<core::Hold> mine();
  std::shared_ptr<core::Hold> mine_if_any() const;
  bool lock(const core::Hold::Acquire& how, const std::stop_token& stop = {}) {
    const auto hold = mine();
    return !stop.stop_requested() && hold->acquire(how, nanoseconds::max(), IfLost::kThrows);
  }
  bool try_lock(const core::Hold::Acquire& how, nanoseconds patience = {}) {
    return mine()->acquire(how, patience, IfLost::kSaysNo);
  }
  void let_go() noexcept;

  const std::shared_ptr<core::Locks> locks;
  const std::string id;
  const ContendOptions options;
  const std::uint64_t creator;

  mutable std::mutex guard;
  std::map<std::uint64_t, std::shared_ptr<core::Hold>> holds;  // by thread; guarded by guard
};

// The calling thread's part, made when it first locks.
std::shared_ptr<core::Hold> LockManager::Lock::State::mine() {
  static_cast<void>(locks->client().session()->engine());  // says so in a forked child
  const std::uint64_t thread = core::this_thread_number();
  const std::lock_guard lock(guard);
  const auto it = holds.find(thread);
  if (it != holds.end()) return it->second;
  locks->claim(id, thread, shared_from_this());
  auto hold = std::make_shared<core::Hold>(locks->client(), id, options);
  core::give_back_at_thread_end(hold, locks->heart());
  locks->heart()->add(id, hold);
  std::erase_if(holds, [&](const auto& each) {
    if (!each.second->has_ended()) return false;
    locks->unclaim(id, each.first, this);
    return true;
  });
  holds.emplace(thread, hold);
  return hold;
}

std::shared_ptr<core::Hold> LockManager::Lock::State::mine_if_any() const {
  if (locks->is_forked()) return nullptr;
  const std::lock_guard lock(guard);
  const auto it = holds.find(core::this_thread_number());
  return it == holds.end() ? nullptr : it->second;
}

void LockManager::Lock::State::let_go() noexcept {
  const std::lock_guard lock(guard);
  locks->unclaim(id, creator, this);
  for (const auto& [thread, hold] : holds) {
    locks->unclaim(id, thread, this);
    if (hold->is_held()) hold->unlock_soon();
  }
}

LockManager::Lock::Lock(std::shared_ptr<State> state) : state_(std::move(state)) {}

LockManager::Lock::~Lock() {
  if (!state_) return;
  // A lock of ours may have been held at the fork.
  if (state_->locks->is_forked()) {
    core::leave_alone(std::move(state_));
  } else {
    state_->let_go();
  }
}

LockManager::Lock::Lock(Lock&&) noexcept = default;
LockManager::Lock& LockManager::Lock::operator=(Lock&& other) noexcept {
  const Lock old(std::move(state_));
  state_ = std::move(other.state_);
  return *this;
}

void LockManager::Lock::lock() {
  state_->lock([](SimbaLocker& locker) {
    locker.lock();
    return true;
  });
}

bool LockManager::Lock::lock(const std::stop_token& stop) {
  return state_->lock([&](SimbaLocker& locker) { return locker.lock(stop); }, stop);
}

bool LockManager::Lock::try_lock() {
  return state_->try_lock([](SimbaLocker& locker) { return locker.try_lock(); });
}

bool LockManager::Lock::try_lock_for_ns(nanoseconds patience) {
  return state_->try_lock([&](SimbaLocker& locker) { return locker.try_lock_for(patience); },
                          patience);
}

bool LockManager::Lock::lock(std::error_code& error) {
  return core::coded(
      error, [&] { return state_->lock([&](SimbaLocker& locker) { return locker.lock(error); }); });
}

bool LockManager::Lock::lock(const std::stop_token& stop, std::error_code& error) {
  return core::coded(error, [&] {
    return state_->lock([&](SimbaLocker& locker) { return locker.lock(stop, error); }, stop);
  });
}

bool LockManager::Lock::try_lock(std::error_code& error) {
  return core::coded(error, [&] {
    return state_->try_lock([&](SimbaLocker& locker) { return locker.try_lock(error); });
  });
}

bool LockManager::Lock::try_lock_for_ns(nanoseconds patience, std::error_code& error) {
  return core::coded(error, [&] {
    return state_->try_lock(
        [&](SimbaLocker& locker) { return locker.try_lock_for(patience, error); }, patience);
  });
}

void LockManager::Lock::unlock() noexcept try {
  if (const auto hold = state_->mine_if_any()) hold->unlock();
} catch (const Error&) {
  // This thread is ending: what it held is on its way back already.
}

Term LockManager::Lock::term() const try {
  const auto hold = state_->mine_if_any();
  return hold ? hold->locker().term() : Term();
} catch (const Error&) {
  return {};  // this thread is ending, as above
}
bool LockManager::Lock::is_owner() const { return term().is_owner(); }
bool LockManager::Lock::is_in_ttl() const { return term().is_in_ttl(); }
Token LockManager::Lock::token() const { return term().token(); }
std::stop_token LockManager::Lock::lost() const { return term().lost(); }
const std::string& LockManager::Lock::id() const { return state_->id; }
milliseconds LockManager::Lock::ttl() const { return state_->options.ttl; }

LockManager LockManager::of(const Client& client) {
  return LockManager(core::Locks::of(client, std::nullopt));
}
LockManager LockManager::of(const Client& client, const TemporalAlignmentStrategy& strategy) {
  return LockManager(core::Locks::of(client, strategy));
}

LockManager::Lock LockManager::create_lock(std::string id) {
  return create_lock(std::move(id), strategy().lock_ttl);
}

LockManager::Lock LockManager::create_lock(std::string id, milliseconds ttl) {
  core::Engine& engine = locks_->client().session()->engine();
  engine.store().check_mutex(id);
  auto state =
      std::make_shared<Lock::State>(locks_, std::move(id), strategy().contend_options(ttl));
  locks_->claim(state->id, state->creator, state);
  return Lock(std::move(state));
}

// In a forked child a thread of the parent may have held the locks below.
void LockManager::on_beat(BeatHook hook) {
  locks_->refuse_if_forked();
  locks_->heart()->set_hook(std::move(hook));
}
Beat LockManager::beat() {
  locks_->refuse_if_forked();
  return locks_->heart()->beat();
}
std::optional<milliseconds> LockManager::time_delta() const {
  return locks_->is_forked() ? std::nullopt : locks_->heart()->time_delta();
}
void LockManager::clear_expired(std::optional<std::string> prefix) {
  locks_->refuse_if_forked();
  locks_->heart()->set_prefix(std::move(prefix));
}
const TemporalAlignmentStrategy& LockManager::strategy() const { return locks_->strategy(); }
std::size_t LockManager::held() const { return locks_->is_forked() ? 0 : locks_->heart()->held(); }

}  // namespace simba::inline v0
