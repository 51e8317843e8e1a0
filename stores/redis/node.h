#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "stores/kit/pool.h"
#include "stores/redis/dialer.h"
#include "stores/redis/link.h"

namespace simba::redis {

// One server: the connection that all callers share, opened on demand by a thread of the pool, and
// opened again after it was lost.
//
// Threads: any.
// Errors: Error.
class Node {
 public:
  // No address: the server of the options, wherever it is when a connection is opened.
  Node(std::shared_ptr<const Dialer> dialer, std::optional<Address> address);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // One that was usable a moment ago.
  std::shared_ptr<Link> link(LocalTime deadline);
  // The replies to all of them, in order.
  Replies run(const Commands& commands, LocalTime deadline);
  void post(const Commands& commands) noexcept;
  // A connection of one's own, for commands that make the server hold up those behind them. Those
  // that ask leave some for those that keep, however long they are held up.
  kit::Pool::Borrowed borrow(Lane lane, LocalTime deadline);
  // The next call opens a new connection: this server is not the one to ask any more.
  void leave(const Error& why);

  // No connection is open, or the one there was has been given up.
  bool is_down() const;

  const std::optional<Address>& address() const { return address_; }

 private:
  std::shared_ptr<Link> current() const;

  const std::shared_ptr<const Dialer> dialer_;
  const std::optional<Address> address_;
  kit::Pool pool_;
  mutable std::mutex guard_;
  std::condition_variable opened_;
  std::shared_ptr<Link> link_;  // guarded by guard_
  bool opening_ = false;        // guarded by guard_: somebody waits for the pool
};

}  // namespace simba::redis
