#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "simba/error.h"
#include "simba/export.h"
#include "stores/kit/backoff.h"
#include "stores/kit/worker.h"

namespace simba::kit {

// One connection that tells of changes: a LISTEN, a subscription, a change stream.
//
// Threads: one at a time.
class SIMBA_EXPORT Source {
 public:
  // Gets the name of a mutex that may have become free. Empty: it may be any.
  using Hint = std::function<void(std::string_view mutex)>;

  virtual ~Source() = default;
  // Waits for news or for the stop, passes the news on, and returns. Throws Error when the
  // connection is lost.
  virtual void read(const StopSignal& stop, const Hint& hint) = 0;
};

// Reads a source and opens it again when it is lost, with a growing pause in between: the one place
// of a store where something is tried again. It passes hints on and does nothing else.
//
// A hint for "any" follows each opening: what changed in between was not heard.
//
// Threads: any.
class SIMBA_EXPORT Reader {
 public:
  // Null: this server cannot push, and the reader ends. Throws Error where it may work later.
  using Open = std::function<std::unique_ptr<Source>(const StopSignal& stop)>;

  struct Parts {
    std::string name;  // of the thread
    Open open;
    Source::Hint hint;
    std::function<void(const Error& error)> on_trouble;  // once per outage
    Backoff backoff{milliseconds{50}, milliseconds{2'000}};
  };

  explicit Reader(Parts parts);

  // False while hints may be missing.
  bool is_live() const noexcept { return shared_->live; }

 private:
  struct Shared {
    explicit Shared(Parts its_parts) : parts(std::move(its_parts)) {}
    Parts parts;  // of the thread alone
    std::atomic<bool> live{false};
  };
  static void run(Shared& shared, const StopSignal& stop);
  static bool read(Shared& shared, const StopSignal& stop);

  const std::shared_ptr<Shared> shared_;
  const Worker worker_;
};

}  // namespace simba::kit
