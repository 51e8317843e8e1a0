#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "simba/executor.h"
#include "simba/term.h"
#include "simba/time.h"

namespace simba::core {

// What a Term handle points at: the deadlines of one term, readable from any thread.
//
// The clock is read before the deadline is, a deadline moves on only by a renewal that came in
// time, and the end takes effect before the store is told: so whoever hears "yes" owned at the
// instant of that clock read. Who hears "no" has ended the term: a renewal that is shown only then,
// as the engine's thread stood still, comes too late.
//
// In a forked child it answers "no" without touching the lock.
//
// Threads: any.
class TermRecord {
 public:
  TermRecord(std::shared_ptr<const Executor> executor, std::string mutex, std::string wire_id,
             Token token);

  bool is_in_ttl() const;
  bool is_owner() const;
  nanoseconds time_left() const;
  Loss loss() const;
  std::stop_token lost() const;

  // False, and nothing is done: somebody has heard "no".
  bool extend(LocalTime ttl_end, LocalTime revoke_at);
  // From here on nobody hears "yes".
  void end();
  // True when somebody holds lost(): request_stop() is to be called.
  bool set_loss(Loss loss);
  // Runs the user's stop callbacks: on a thread that may wait for them.
  void request_stop();

  const std::string mutex;
  const std::string wire_id;
  const Token token;

 private:
  static constexpr LocalTime kOver = LocalTime::min();

  bool is_forked() const;
  // What `now` has reached is over.
  LocalTime lasts_until(LocalTime now) const;

  const std::shared_ptr<const Executor> executor_;
  const std::uint64_t process_;
  mutable std::mutex guard_;
  // Guarded by guard_. Made when somebody asks for it: most locks are held without.
  mutable std::stop_source lost_{std::nostopstate};
  Loss loss_;             // guarded by guard_
  bool is_lost_ = false;  // guarded by guard_
  // Asked before every write that the mutex protects: without a lock.
  std::atomic<LocalTime> ttl_end_{LocalTime{}};
  mutable std::atomic<LocalTime> revoke_at_{LocalTime{}};
};

}  // namespace simba::core
