#pragma once

#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simba/async.h"

namespace simba::inline v0 {

// `simba::HeldMutex held = co_await simba::acquire(client, "nightly");`
//
// Empty when the time was up or the wish was cancelled; throws Error when waiting could not help.
// The coroutine goes on where the callback of acquire_async() would run; what it lets out ends the
// program. One that is destroyed while it waits is not gone on with: the wish is cancelled, and
// what comes all the same is given back.
class AcquireAwaitable {
 public:
  AcquireAwaitable(const Client& client, std::string mutex, AcquireOptions options)
      : client_(client), mutex_(std::move(mutex)), options_(std::move(options)) {}
  ~AcquireAwaitable() {
    if (wait_) wait_->forget();
  }
  AcquireAwaitable(const AcquireAwaitable&) = delete;
  AcquireAwaitable& operator=(const AcquireAwaitable&) = delete;

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    // The coroutine may have gone on, and this be gone, before acquire_async has returned.
    const auto wait = wait_ = std::make_shared<Wait>();
    PendingAcquire pending = acquire_async(client_, std::move(mutex_), std::move(options_),
                                           [wait, waiting](Acquired acquired) {
                                             if (wait->end(std::move(acquired))) waiting.resume();
                                           });
    wait->set_pending(std::move(pending));
  }

  HeldMutex await_resume() {
    if (wait_->result->error) throw Error(*wait_->result->error);
    return std::move(wait_->result->held);
  }

 private:
  // Outlives the coroutine.
  struct Wait {
    // False when nobody waits any more.
    bool end(Acquired acquired) {
      const std::lock_guard lock(guard);
      if (is_forgotten) return false;
      result = std::move(acquired);
      return true;
    }
    void set_pending(PendingAcquire its_pending) {
      const std::lock_guard lock(guard);
      if (is_forgotten) its_pending.cancel();
      if (!result) pending = std::move(its_pending);
    }
    void forget() {
      std::optional<PendingAcquire> unwanted;
      {
        const std::lock_guard lock(guard);
        is_forgotten = true;
        if (!result) unwanted = std::move(pending);
        pending.reset();
      }
      if (unwanted) unwanted->cancel();
    }

    std::mutex guard;
    std::optional<Acquired> result;         // guarded by guard until it is there
    std::optional<PendingAcquire> pending;  // guarded by guard, as the next one
    bool is_forgotten = false;
  };

  const Client client_;
  std::string mutex_;
  AcquireOptions options_;
  std::shared_ptr<Wait> wait_;
};

// Views and references on purpose: GCC 12 moves temporaries of a co_await expression into the
// coroutine byte by byte, which a string does not survive.
inline AcquireAwaitable acquire(const Client& client, std::string_view mutex) {
  return AcquireAwaitable(client, std::string(mutex), AcquireOptions());
}
inline AcquireAwaitable acquire(const Client& client, std::string_view mutex,
                                const AcquireOptions& options) {
  return AcquireAwaitable(client, std::string(mutex), options);
}

}  // namespace simba::inline v0
