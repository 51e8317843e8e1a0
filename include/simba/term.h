#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "simba/export.h"
#include "simba/time.h"

namespace simba::core {
class TermRecord;
}

namespace simba::inline v0 {

enum class LossReason {
  kNone,         // the term is not over
  kReleased,     // given up by its owner: stop(), unlock(), the maximum hold time
  kExpired,      // not renewed in time
  kSuperseded,   // the store names another owner, or another token
  kUnreachable,  // not renewed in time, because the store did not answer
  kForced,       // evicted by an operator
  kClockJump,    // the process or the machine stood still past the end of the lease
  kReplaced,     // the store itself was deleted or replaced
  kAbandoned,    // the work outlived its grace: nothing was released, the lease runs out
};

SIMBA_EXPORT const char* to_string(LossReason) noexcept;

struct Loss {
  LossReason reason = LossReason::kNone;
  std::string superseded_by;  // the wire id of the next owner, where it is known
};

// One ownership, from acquisition to loss. A cheap handle: copies speak of the same term.
//
// A paused owner can still *act* after its lease has ended; only a resource that refuses smaller
// tokens protects itself from that. Pass token() along with every write.
//
// Threads: any.
class SIMBA_EXPORT Term {
 public:
  Term();
  explicit Term(std::shared_ptr<const core::TermRecord> record);

  explicit operator bool() const { return record_ != nullptr; }

  Token token() const;
  const std::string& mutex() const;
  const std::string& wire_id() const;

  // Requested when the term ends, at the latest when others may soon enter.
  std::stop_token lost() const;
  // Both read the clock at every question. Once is_owner() is false it stays so.
  bool is_in_ttl() const;
  bool is_owner() const;
  // Until is_owner() becomes false if no renewal succeeds; never negative.
  nanoseconds time_left() const;
  Loss loss() const;

 private:
  std::shared_ptr<const core::TermRecord> record_;
};

}  // namespace simba::inline v0
