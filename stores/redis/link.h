#pragma once

#include <memory>
#include <mutex>

#include "simba/time.h"
#include "stores/kit/pool.h"
#include "stores/kit/worker.h"
#include "stores/redis/commands.h"
#include "stores/redis/connection.h"

namespace simba::redis {

// One connection that any number of callers share.
//
//   idle   the caller sends, waits and reads itself: nothing is handed to another thread
//   busy   callers send, and one of them reads for all: the *driver*. Who drives and has its own
//          answer passes the wheel on: to another who waits, or, when many wait, to a thread of the
//          link, which keeps it until nobody waits any more
//
// Nobody waits for room to send: what does not fit is sent by who reads, or by the next caller.
// Answers come in the order of the commands. A caller whose deadline passes leaves; its answer is
// dropped when it comes. A server that says nothing for a second to somebody who waits in vain is
// given up: the connection is closed, all others hear so.
//
// Threads: any.
// Errors: Error (kUnreachable, kTimeout, kCorrupt): whether the server acted is unknown.
class Link {
 public:
  explicit Link(kit::Pool::Borrowed borrowed);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();  // nobody calls any more

  // False: it was broken before anything was sent.
  bool run(const Commands& commands, LocalTime deadline, Replies& replies);
  // Sends and forgets. Does not wait: where the server takes nothing, that goes with what is sent
  // next, or is dropped where there is much already.
  void post(const Commands& commands) noexcept;
  // From now on it is broken; who waits hears why.
  void give_up(const Error& why);

  bool is_broken() const;
  const ServerFacts& facts() const;
  const std::string& where() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::unique_ptr<kit::Worker> worker_;  // guarded by the state's lock; started when it gets busy

  bool start_worker();
  void hand_over(std::unique_lock<std::mutex>& lock);
};

}  // namespace simba::redis
