#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "simba/error.h"
#include "simba/time.h"
#include "stores/kit/pool.h"
#include "stores/redis/commands.h"
#include "stores/redis/reply.h"
#include "stores/redis/transport.h"

namespace simba::redis {

// What a server told of itself when the connection was made.
struct ServerFacts {
  bool can_read_only_scripts = false;  // EVALSHA_RO, from 7.0 on
  // It does not write down what it grants: leases from before it started may be forgotten.
  bool may_have_forgotten = false;
  std::int64_t started = 0;  // at the latest, by its own clock, in ms
  LocalTime seen_up{};       // when it said all this
};

// One connection: bytes out, replies in.
//
// Threads: one may receive while another sends; run() is both.
// Errors: Error (kUnreachable, kTimeout, kCorrupt); std::bad_alloc. Afterwards it is not usable any
// more.
class Connection : public kit::Pooled {
 public:
  Connection(std::unique_ptr<Transport> transport, std::string where)
      : transport_(std::move(transport)), where_(std::move(where)) {}

  bool is_usable() noexcept override { return !broken_ && transport_->is_open(); }
  // The replies to all of them, in order.
  Replies run(const Commands& commands, LocalTime deadline, const kit::StopSignal* stop = nullptr);

  // All of it. When that takes too long the connection is of no use any more.
  void send(std::string_view bytes, LocalTime deadline, const kit::StopSignal* stop = nullptr);
  // What goes out at once, as Transport::write(); does not wait.
  Transport::Moved send_some(std::string_view bytes);
  // What has come, up to a megabyte; does not wait.
  void receive(Replies& replies);
  // More has come, whatever the descriptor says.
  bool has_more() const { return transport_->has_more(); }
  // The same, but waits for some. Returns without any at the deadline, at the stop, when one of the
  // `other` events (as for poll()) holds, or for no reason.
  void await(Replies& replies, LocalTime deadline, const kit::StopSignal* stop = nullptr,
             short other = 0);
  // For good, from any thread.
  void shut_down() noexcept {
    broken_ = true;
    transport_->shut_down();
  }

  int descriptor() const { return transport_->descriptor(); }
  const std::string& where() const { return where_; }  // "redis at host:port"

  ServerFacts facts;

 private:
  bool wait_readable(LocalTime deadline, const kit::StopSignal* stop, short other) const;
  void receive_from(Transport::Moved (Transport::*how)(char*, std::size_t), Replies& replies);
  // Why it was turned away, where the server has said so before it hung up.
  std::optional<Error> parting_words(Replies& replies);
  [[noreturn]] void fail(Errc code, const std::string& why);

  const std::unique_ptr<Transport> transport_;
  const std::string where_;
  ReplyReader reader_;
  std::atomic<bool> broken_{false};
};

}  // namespace simba::redis
