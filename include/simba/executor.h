#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "simba/error.h"
#include "simba/export.h"
#include "simba/time.h"

namespace simba::inline v0 {

// Renewals and releases never queue behind acquisitions.
enum class Lane : std::uint8_t { kKeep, kAsk };

// One call to the store, in the steps a real network takes it through, so that a simulated one can
// delay, lose or double each of them. In this order: send, perform, complete.
class SIMBA_EXPORT StoreCall {
 public:
  virtual ~StoreCall() = default;
  virtual LocalTime deadline() const = 0;
  virtual void send() = 0;     // the moment before the request goes out
  virtual void perform() = 0;  // talks to the store; never throws
  virtual void lose() = 0;     // instead of an answer: it timed out
  virtual void complete() = 0;
};

// Where an engine's time, threads and randomness come from. The library brings one with threads;
// the tests bring one with virtual time, in which nothing happens unless they say so.
//
// Threads: the engine calls from any thread.
class SIMBA_EXPORT Executor {
 public:
  virtual ~Executor() = default;

  virtual LocalTime now() const noexcept = 0;
  virtual std::uint64_t random() = 0;

  // `on_alarm` is called once, at or soon after the earliest time set since it was last called;
  // never inside set_alarm.
  virtual void start(std::function<void()> on_alarm) = 0;
  virtual void set_alarm(LocalTime at) = 0;
  // None of these runs its task before it has returned.
  virtual void call(Lane lane, std::shared_ptr<StoreCall> call) = 0;
  virtual void callback(std::function<void()> task) = 0;  // user code: may take its time
  virtual void revoke(
      std::function<void()> task) = 0;  // stop requests: must not wait for callbacks
  // No task runs, and none starts, after this has returned, but for the one that calls it. What was
  // handed over to revoke() is done by then, of the rest only what had begun.
  virtual void shut_down() = 0;
  // False where time stands still while somebody waits: then nobody does.
  virtual bool goes_on_by_itself() const noexcept { return true; }
};

}  // namespace simba::inline v0
