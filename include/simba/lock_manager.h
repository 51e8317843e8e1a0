#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "simba/client.h"
#include "simba/error.h"
#include "simba/export.h"
#include "simba/term.h"

namespace simba::core {
class Locks;
}

namespace simba::inline v0 {

// How the locks of a manager keep time. Validated as a whole: what cannot work is refused with the
// numbers.
struct SIMBA_EXPORT TemporalAlignmentStrategy {
  milliseconds lock_ttl{10'000};  // of a lock that brings none of its own
  // The lease in the store is ttl times this: the buffer pays for clocks that drift. 1.0 to 10.0.
  double lock_ttl_buffer_coefficient = 1.1;
  // An owner renews this long after its last renewal, one with a short ttl sooner (at two thirds of
  // it); the first time up to a quarter sooner, to go out with others. At most two thirds of
  // lock_ttl.
  milliseconds beat_interval{2'000};
  // After a failed call, and between the questions of a waiter whom the store cannot wake: at least
  // this long, then twice as long each time.
  milliseconds base_backoff{10};
  // Added to such a pause of a waiter, and to the moment at which it asks again after a lease that
  // ends, up to this.
  milliseconds max_jitter{100};
  // A waiter asks at least this often, and no pause after a failed call is longer.
  milliseconds max_delay{1'000};

  // What a lock with this ttl contends with. Throws Error (kMisconfigured).
  ContendOptions contend_options(milliseconds ttl) const;

  friend bool operator==(const TemporalAlignmentStrategy&,
                         const TemporalAlignmentStrategy&) = default;
};

// What one beat of the heart saw and did. Counts are since the beat before.
struct Beat {
  std::size_t renewed = 0;   // locks
  std::size_t failed = 0;    // renewals
  std::size_t released = 0;  // locks of threads that have ended
  std::size_t cleared = 0;   // expired records: the owner's name is gone now, the token stays
  // The store's clock minus this machine's. Shown, never used to decide. On a store whose clock
  // counts from something else (memory, sqlite) it says only that.
  std::optional<milliseconds> time_delta;
  std::optional<Error> trouble;  // of the beat itself; the next one tries again
};

// The locks of one client: made by create_lock(), renewed in bulk, given back when their thread
// ends. The API of the MongoDB pessimistic-lock article, on any store.
//
//   simba::LockManager manager = simba::LockManager::of(client);
//   simba::LockManager::Lock lock = manager.create_lock("L1", 4s);
//   if (lock.try_lock_for(12s)) count(lock.token());
//   lock.unlock();
//
// There is no loop here: the heartbeat is the engine's renewals seen from this side. Once in each
// beat_interval in which locks are renewed, a beat reads the store's clock, clears expired records
// and calls on_beat. While no lock is held there is none, but for one after a thread that ended
// with the last.
//
// Not guaranteed: that a paused owner has no effects after its lease has ended: see
// docs/guarantees.md, and pass token() to what you write to. No order between waiters of different
// processes; those of one process follow one another in the order of their arrival.
//
// Threads: any. After a fork all of this is dead in the child.
class SIMBA_EXPORT LockManager {
 public:
  class Lock;
  using BeatHook = std::function<void(const Beat&)>;

  // The one of this client; copies of a client are the same client.
  // Errors: kMisconfigured for a strategy that cannot work, kMisuse for another strategy than that
  // of the manager which is there already, or where the store works on a driver's client of the
  // user's that has a manager through another client.
  static LockManager of(const Client& client);
  static LockManager of(const Client& client, const TemporalAlignmentStrategy& strategy);

  // Not active until it is locked. A second one for the same id in the same thread, while the first
  // lives, is an error (kMisuse): one would wait for the other for ever.
  Lock create_lock(std::string id);
  Lock create_lock(std::string id, milliseconds ttl);

  // Called after each beat, on a thread of the engine, one at a time. An exception is logged and
  // changes nothing.
  void on_beat(BeatHook hook);
  // A beat now, on the caller's thread. Never throws: trouble is in the result.
  Beat beat();
  // As the last beat saw it.
  std::optional<milliseconds> time_delta() const;
  // Expired records with names that begin with this are cleared; all by default. None: nothing is.
  void clear_expired(std::optional<std::string> prefix);

  const TemporalAlignmentStrategy& strategy() const;
  std::size_t held() const;  // locks, of all threads; one whose term is lost does not count

  // From now on std::terminate (an exception that nobody catches) gives back what its thread holds,
  // of all managers, within a second, before it goes on as usual. What other threads hold runs out:
  // they work on until the process is gone.
  static void release_on_terminate();

 private:
  explicit LockManager(std::shared_ptr<core::Locks> locks) : locks_(std::move(locks)) {}
  std::shared_ptr<core::Locks> locks_;
};

// One lock. It belongs to the pair (lock id, thread): a thread that has it may lock it again, which
// extends the lease; others wait. It fits std::unique_lock.
//
// Who locks again what was lost meanwhile hears of it, once: lock() throws Error (kMisuse), a try
// says no. After that, or after unlock(), the next one is a new term. While the store is away, a
// lock that is held stays so, and its renewals are repeated.
//
// One unlock() gives it back, however often it was locked.
//
// Threads: any; each thread owns or waits for itself. lost(), token() and their like speak of the
// calling thread's term. The destructor gives back in the background what any thread still holds.
// Errors: as SimbaLocker. kMisuse where this thread uses the same id through another object.
class SIMBA_EXPORT LockManager::Lock {
 public:
  ~Lock();
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;

  void lock();
  // False when `stop` was requested first, also to a thread that holds it, which goes on doing so.
  bool lock(const std::stop_token& stop);
  bool try_lock();
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& patience) {
    return try_lock_for_ns(bounded(patience));
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(bounded(when.time_since_epoch()) -
                        bounded(Clock::now().time_since_epoch()));
  }
  // Does nothing where this thread does not hold it.
  void unlock() noexcept;

  // The same with an error code instead of an exception, as those of SimbaLocker.
  bool lock(std::error_code& error);
  bool lock(const std::stop_token& stop, std::error_code& error);
  bool try_lock(std::error_code& error);
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& patience, std::error_code& error) {
    return try_lock_for_ns(bounded(patience), error);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when,
                      std::error_code& error) {
    return try_lock_for(bounded(when.time_since_epoch()) - bounded(Clock::now().time_since_epoch()),
                        error);
  }

  bool is_owner() const;
  bool is_in_ttl() const;
  Token token() const;
  std::stop_token lost() const;
  Term term() const;
  const std::string& id() const;
  milliseconds ttl() const;

 private:
  friend class LockManager;
  struct State;
  explicit Lock(std::shared_ptr<State> state);
  bool try_lock_for_ns(nanoseconds patience);
  bool try_lock_for_ns(nanoseconds patience, std::error_code& error);
  std::shared_ptr<State> state_;
};

}  // namespace simba::inline v0
