#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simba/error.h"
#include "stores/redis/commands.h"
#include "stores/redis/reply.h"
#include "stores/redis/scripts.h"
#include "stores/redis/servers.h"

namespace simba::redis {

// One script call, or one plain command, and what came of it.
struct Request {
  enum class Kind {
    kWrite,
    kRead,   // changes nothing: also a replica, and a user who may only read, can serve it
    kTake,   // its last argument is when a server that may have forgotten may grant it
    kPlain,  // no script: a command
  };

  Kind kind = Kind::kPlain;
  const Script* script = nullptr;
  Words words;  // of a script: the number of keys, the keys, the arguments
  std::uint16_t slot = 0;
  unsigned cost = 1;          // microseconds of the server's time, roughly
  std::int64_t lease = 0;     // of a take, in ms
  bool acknowledged = false;  // replicas must have it
  // It waits for replicas, and so for a connection of its own; none: it goes by the shared one.
  std::optional<Lane> own_lane() const {
    if (!acknowledged) return std::nullopt;
    return kind == Kind::kTake ? Lane::kAsk : Lane::kKeep;
  }

  Reply reply;
  std::optional<Error> error;  // instead of a reply
};

// What goes out together: at most half a millisecond of a server's time, so that nobody else waits
// longer for it, and at least one request. What replicas must acknowledge goes apart, and renewals
// do not wait with takes.
//
// Threads: one.
class Pipeline {
 public:
  // False: the request goes with the next one.
  bool takes(const Request& request);

 private:
  unsigned cost_ = 0;
  const Request* first_ = nullptr;
};

// Brings requests to the servers that serve them, in pipelines, and goes where a cluster sends it.
// A server that has forgotten the scripts is told them again.
//
// Threads: any.
// Errors: each request has its own.
class Courier {
 public:
  explicit Courier(std::shared_ptr<const Dialer> dialer);

  void perform(std::span<Request> requests, LocalTime deadline);
  void post(std::uint16_t slot, const Commands& commands) noexcept;
  Servers& servers() { return servers_; }
  const Dialer& dialer() const { return *dialer_; }

 private:
  struct Errand;
  using Errands = std::vector<Errand>;

  void perform_on(Node& node, std::span<Errand> errands, LocalTime deadline);
  void run_some(Node& node, std::span<Errand> errands, LocalTime deadline);
  void run_acknowledged(Node& node, std::span<Errand> errands, LocalTime deadline);
  void settle(Node& node, std::span<Errand> errands, Replies& replies);
  // False: it has its answer.
  bool goes_on(Errand& errand);

  const std::shared_ptr<const Dialer> dialer_;
  Servers servers_;
};

}  // namespace simba::redis
