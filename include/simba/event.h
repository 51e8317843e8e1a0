#pragma once

#include <functional>
#include <string_view>

#include "simba/error.h"
#include "simba/term.h"
#include "simba/time.h"

namespace simba::inline v0 {

// What the engine did, for logs and metrics.
struct Event {
  enum class Kind {
    kAcquired,
    kRenewed,
    kRenewalFailed,
    kRevoked,   // the term ended without the owner's wish
    kReleased,  // the owner gave it up
    kCalled,    // one store call, with its duration and the number of claims in it; none in
                // Client::observe(), list() and evict()
  };
  Kind kind{};
  std::string_view mutex;    // empty for kCalled
  std::string_view wire_id;  // likewise
  Token token = 0;
  LossReason reason = LossReason::kNone;
  nanoseconds duration{};
  std::size_t claims = 0;
  const Error* error = nullptr;  // kRenewalFailed, kCalled
};

// Called on the thread on which it happened, never under a lock of ours and never by way of the
// `handle_executor`: on threads of ours, and on the caller's own in lock() and unlock(). What a
// deadline brought about is told on one of our threads for callbacks, and what happens to the same
// mutex meanwhile is told behind it. So a hook that blocks delays no deadline, but the call in
// which it is told and what is told behind it: it should be quick. It must not throw: nobody is
// there to catch it.
using EventHook = std::function<void(const Event&)>;

}  // namespace simba::inline v0
