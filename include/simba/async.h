#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "simba/client.h"
#include "simba/error.h"
#include "simba/export.h"
#include "simba/term.h"

namespace simba::inline v0 {

// A mutex that is held; given up when this is destroyed, without waiting for the store.
//
// Threads: one at a time; the handles it gives out may be used by any.
class SIMBA_EXPORT HeldMutex {
 public:
  HeldMutex();
  ~HeldMutex();
  HeldMutex(HeldMutex&&) noexcept;
  HeldMutex& operator=(HeldMutex&&) noexcept;

  explicit operator bool() const { return state_ != nullptr; }
  Term term() const;
  Token token() const { return term().token(); }
  std::stop_token lost() const { return term().lost(); }
  bool is_in_ttl() const { return term().is_in_ttl(); }
  void release() noexcept;

 private:
  friend class PendingAcquire;
  struct State;
  explicit HeldMutex(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// `held` is empty when nothing was acquired: with an error when waiting could not help, without one
// when the time was up or the wish was cancelled.
struct Acquired {
  HeldMutex held;
  std::optional<Error> error;
};

struct AcquireOptions {
  std::optional<ContendOptions> contend;  // the client's by default
  std::string contender_id;               // by default one of ContenderIdGenerator::host()
  std::optional<milliseconds> timeout;    // none: as long as it takes
  std::stop_token stop;                   // cancels
};

// A wish under way. Dropping it changes nothing: cancel() does.
class SIMBA_EXPORT PendingAcquire {
 public:
  // The callback still comes, exactly once: with nothing held, or with the mutex if it was granted
  // just then.
  void cancel();

 private:
  friend SIMBA_EXPORT PendingAcquire acquire_async(const Client& client, std::string mutex,
                                                   AcquireOptions options,
                                                   std::function<void(Acquired)> callback);
  struct State;
  std::shared_ptr<State> state_;
};

// Acquires without a thread that waits.
//
// Threads: `callback` comes exactly once and never inside this call: on the client's
// `handle_executor`, without one on a thread of ours for callbacks, where it may take its time. It
// must not throw: nobody is there to catch it, and the program would end.
// Errors: throws Error (kMisconfigured) for a name or options that cannot work, kMisuse for an
// empty callback.
SIMBA_EXPORT PendingAcquire acquire_async(const Client& client, std::string mutex,
                                          AcquireOptions options,
                                          std::function<void(Acquired)> callback);

}  // namespace simba::inline v0
