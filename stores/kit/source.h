#pragma once

#include <functional>
#include <string_view>

#include "stores/kit/worker.h"

namespace simba::kit {

// One connection that tells of changes: a LISTEN, a subscription, a change stream.
//
// Threads: one at a time.
class Source {
 public:
  // Gets the name of a mutex that may have become free. Empty: it may be any.
  using Hint = std::function<void(std::string_view mutex)>;

  virtual ~Source() = default;
  // Waits for news or for the stop, passes the news on, and returns. Throws Error when the
  // connection is lost.
  virtual void read(const StopSignal& stop, const Hint& hint) = 0;
};

// One that any thread can read for a while.
class LendableSource : public Source {
 public:
  void read(const StopSignal& stop, const Hint& hint) final {
    read_until(stop.descriptor(), LocalTime::max(), hint);
  }
  // The same; returns when the descriptor is readable, and when `until` has come.
  virtual void read_until(int interrupt, LocalTime until, const Hint& hint) = 0;
};

}  // namespace simba::kit
