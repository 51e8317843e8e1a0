#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/session.h"
#include "simba/lock_manager.h"
#include "simba/locker.h"

// What stands behind a LockManager: the locks of one client, by lock id and thread.
namespace simba::core {

class Heart;

// A number for the calling thread that no other thread of this process ever has.
// Throws Error (kMisuse) once the thread is ending.
std::uint64_t this_thread_number();

// One thread's part in one lock: the pair (lock id, thread).
//
// Threads: its own thread locks and unlocks; anybody may give back what that thread left.
class Hold : public std::enable_shared_from_this<Hold> {
 public:
  using Acquire = std::function<bool(SimbaLocker&)>;

  Hold(const Client& client, const std::string& id, const ContendOptions& options)
      : session_(client.session()), locker_(client, id, options) {}

  bool is_held() const {
    return held_;
  }  // also when its term is lost, until its thread hears of it
  bool owns() const { return held_ && locker_.is_owner(); }
  bool has_ended() const { return ended_; }  // its thread
  bool is_forked() const;
  const SimbaLocker& locker() const { return locker_; }

  // What to do about a term that this thread had, and that was lost since.
  enum class IfLost : std::uint8_t { kThrows, kSaysNo };

  // `patience` is that of `acquire`, for a lock that is held already; zero: as long as a call may
  // take.
  bool acquire(const Acquire& acquire, nanoseconds patience, IfLost then);
  void unlock() noexcept;
  // No I/O here. Nobody is left who would hold the client for it: whoever ends that waits for it.
  void unlock_soon() noexcept;
  // For a thread that may stand in the middle of anything, also of the engine: one of the engine's
  // does it, and calls `done`.
  void unlock_elsewhere(std::function<void()> done) noexcept;
  // Its thread has: true when that gave something back.
  bool end() noexcept;

 private:
  const std::shared_ptr<Session> session_;
  SimbaLocker locker_;
  std::atomic<bool> held_{false}, ended_{false};
};

// When this thread ends, what it holds is given back; `heart` counts it.
void give_back_at_thread_end(const std::shared_ptr<Hold>& hold,
                             const std::shared_ptr<Heart>& heart);
std::vector<std::shared_ptr<Hold>> held_by_this_thread();

// The heartbeat of the locks of one client. Threads of the engine hold it, so it does not hold the
// client: one of them would be the last to do so, and could not wait for its own end.
//
// Threads: any.
class Heart : public std::enable_shared_from_this<Heart> {
 public:
  Heart(const Session& session, const TemporalAlignmentStrategy& strategy);

  void listen();
  void add(const std::string& id, const std::shared_ptr<Hold>& hold);
  std::size_t held() const;
  void count_ended_thread() noexcept;

  Beat beat();
  void set_hook(LockManager::BeatHook hook);
  void set_prefix(std::optional<std::string> prefix);
  std::optional<milliseconds> time_delta() const;

 private:
  void hear(std::span<const Event> events);
  void beat_elsewhere();
  bool holds(std::string_view id) const;  // needs guard_
  bool holds_any() const;                 // needs guard_
  bool is_end_due();                      // needs guard_
  void sweep();                           // needs guard_
  void measure(Beat& beat);
  void clear(Beat& beat, const std::string& prefix);
  void tell(const Beat& beat);
  void log(LogLevel level, const std::string& line) const;
  Executor& executor() const { return store_.engine().executor(); }

  const OutsideCalls store_;
  const LogSink log_;
  const milliseconds interval_;
  std::shared_ptr<const Engine::Listener> listener_;

  mutable std::mutex guard_;
  // Guarded by guard_:
  std::multimap<std::string, std::weak_ptr<Hold>, std::less<>> holds_;
  std::size_t sweep_at_ = 64;
  std::string some_id_ = "simba";  // to ask the store's clock with
  Beat next_;                      // what is counted for it
  LocalTime next_beat_ = LocalTime::min();
  bool beat_is_due_ = false;
  bool end_is_told_ = false;  // of a thread: a beat that will tell of it is under way
  std::optional<std::string> prefix_ = std::string();
  std::optional<milliseconds> time_delta_;
  std::shared_ptr<const LockManager::BeatHook> hook_;

  std::mutex beating_;  // one at a time
  // Guarded by beating_:
  std::string looked_up_to_;  // the last name that is done in this round; empty: it begins
};

// All locks of one client, which it keeps alive.
//
// Threads: any.
class Locks {
 public:
  Locks(Client client, const TemporalAlignmentStrategy& strategy);

  // The one of this client, if it has one.
  static std::shared_ptr<Locks> of(const Client& client,
                                   const std::optional<TemporalAlignmentStrategy>& strategy);

  const Client& client() const { return client_; }
  const TemporalAlignmentStrategy& strategy() const { return strategy_; }
  const std::shared_ptr<Heart>& heart() const { return heart_; }
  bool is_forked() const;
  void refuse_if_forked() const;

  // Throws Error (kMisuse) where this thread uses the id through another lock than `user`.
  void claim(const std::string& id, std::uint64_t thread, const std::shared_ptr<void>& user);
  void unclaim(const std::string& id, std::uint64_t thread, const void* user);

 private:
  const Client client_;
  const TemporalAlignmentStrategy strategy_;
  const std::shared_ptr<Heart> heart_;

  std::mutex guard_;
  // Guarded by guard_:
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<void>> users_;
  std::size_t sweep_at_ = 64;
};

}  // namespace simba::core
