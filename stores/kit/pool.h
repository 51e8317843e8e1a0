#pragma once

#include <functional>
#include <memory>
#include <string>

#include "simba/error.h"
#include "simba/executor.h"
#include "simba/time.h"
#include "stores/kit/worker.h"

namespace simba::kit {

// A connection that a pool keeps.
//
// Threads: one at a time.
class Pooled {
 public:
  virtual ~Pooled() = default;
  // Asked before and after each use. False: the other side has closed it, or an error has spoilt
  // it. Does not wait.
  virtual bool is_usable() noexcept = 0;
};

// Connections to one server, opened on demand by a thread of the pool, because drivers resolve
// names and connect without a deadline. Callers wait for one until their deadline.
//
//   Lane::kAsk   may use all but the reserved ones
//   Lane::kKeep  may use all, and is served first: a renewal never waits for acquisitions
//
// The reserved ones are opened once somebody contends, so that they are there when the server has
// no more to give. When opening fails, those who wait hear why, at once; for a short while
// afterwards the server is left alone and callers are told the same.
//
// Threads: any, but for the destructor. In a forked child nothing is touched.
// Errors: what `open` threw, else kTimeout.
class Pool {
  struct State;

 public:
  struct Options {
    std::string name;          // of the store, for errors
    std::size_t most = 8;      // connections at once
    std::size_t reserved = 1;  // of these
    // Opens one connection, blocking; owns what it touches. Throws Error.
    std::function<std::unique_ptr<Pooled>(const StopSignal& stop)> open;
  };

  // One connection for one call; goes back with this.
  class Borrowed {
   public:
    Borrowed(Borrowed&&) noexcept = default;
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed();
    Pooled& get() const { return *connection_; }

   private:
    friend class Pool;
    Borrowed(std::shared_ptr<State> state, std::unique_ptr<Pooled> connection, Lane lane)
        : state_(std::move(state)), connection_(std::move(connection)), lane_(lane) {}
    std::shared_ptr<State> state_;  // it may outlive the pool
    std::unique_ptr<Pooled> connection_;
    Lane lane_;
  };

  explicit Pool(Options options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  enum class Reserve { kLater, kNow };
  // kNow: there will be terms to keep, open the reserved ones in the background.
  Borrowed borrow(Lane lane, LocalTime deadline, Reserve reserve = Reserve::kLater);
  // A call failed on this connection. Where the server is gone, or was, or another one writes now
  // (`only_reads`), the others would only fail one call each: those nobody uses are closed. Not
  // where this one goes on: a server that lacks room might give no others.
  void note_failure(Pooled& connection, const Error& error, bool only_reads);
  // Closes what nobody uses: after one connection was lost, the others are likely lost too.
  void drop_idle();

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<Worker> opener_;  // guarded by the state's lock; started with the first call
};

}  // namespace simba::kit
