#pragma once

#include <coroutine>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simba/async.h"

namespace simba::inline v0 {

// `simba::HeldMutex held = co_await simba::acquire(client, "nightly");`
//
// Empty when the time was up or the wish was cancelled; throws Error when waiting could not help.
// The coroutine goes on on a thread for callbacks.
class AcquireAwaitable {
 public:
  AcquireAwaitable(const Client& client, std::string mutex, AcquireOptions options)
      : client_(client), mutex_(std::move(mutex)), options_(std::move(options)) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    acquire_async(client_, std::move(mutex_), std::move(options_),
                  [this, waiting](Acquired acquired) {
                    result_ = std::move(acquired);
                    waiting.resume();
                  });
  }

  HeldMutex await_resume() {
    if (result_->error) throw Error(*result_->error);
    return std::move(result_->held);
  }

 private:
  const Client client_;
  std::string mutex_;
  AcquireOptions options_;
  std::optional<Acquired> result_;
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
