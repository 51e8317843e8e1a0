#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

#include "simba/client.h"
#include "simba/export.h"
#include "simba/term.h"

namespace simba::core {
class Hold;
}

namespace simba::inline v0 {

// A lock for a critical section across processes: a std TimedLockable, for std::unique_lock,
// std::lock_guard and std::scoped_lock.
//
//   simba::SimbaLocker locker{client, "nightly-report"};
//   if (std::unique_lock lock{locker, 30s}) write_report(locker.lost(), locker.token());
//
// Not guaranteed: that a paused owner has no effects after its lease has ended. Watch lost() in
// long work, and pass token() to what you write to: see docs/guarantees.md.
//
// A free mutex costs one round trip to lock and one to unlock, on the caller's thread. Not
// reentrant: lock() while this object holds or waits is an error. Over two lockers std::scoped_lock
// spins on the network until it has both.
//
// Threads: one at a time locks, waits or holds; the others may ask is_owner(), lost(), token().
// Errors: lock() throws Error when waiting cannot help (kDenied, kMisconfigured, kMisuse,
// kCorrupt), and once when the store was replaced under it (kReplaced: lock again, if the new one
// will do); while the store is away it waits. unlock() never throws: what could not be released is
// retried until the lease ends.
class SIMBA_EXPORT SimbaLocker {
 public:
  SimbaLocker(const Client& client, std::string mutex);
  SimbaLocker(const Client& client, std::string mutex, const ContendOptions& options,
              std::string contender_id = {});
  ~SimbaLocker();
  SimbaLocker(SimbaLocker&&) noexcept;
  SimbaLocker& operator=(SimbaLocker&&) noexcept;

  void lock();
  // False when `stop` was requested first. Where that was before the call, nothing is asked.
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
  void unlock() noexcept;
  // Extends the lease now, in one round trip, and not only when a renewal is due. True while
  // is_in_ttl(): a call that fails ends nothing, the engine goes on renewing.
  bool renew();

  // The same with an error code instead of an exception; false: not locked, and of renew() not in
  // its ttl. A try that the store did not answer has its code too, where try_lock() and
  // try_lock_for() only say no.
  bool lock(std::error_code& error);
  bool lock(const std::stop_token& stop, std::error_code& error);
  bool try_lock(std::error_code& error);
  bool renew(std::error_code& error);
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
  const std::string& mutex() const;

 private:
  friend class core::Hold;
  // As unlock(), but does not wait: no I/O on this thread.
  void unlock_soon() noexcept;
  bool try_lock_for_ns(nanoseconds patience);
  bool try_lock_for_ns(nanoseconds patience, std::error_code& error);
  // As renew(), with no more patience than a lock that waits so long.
  bool renew_for(nanoseconds patience);
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace simba::inline v0
