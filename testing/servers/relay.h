#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "testing/servers/port.h"
#include "testing/servers/unique_fd.h"

namespace simba::servers {

// A network between a client and a server on loopback, that can be broken: connections to its port
// go on to the target's.
//
//   cut()     connections are reset, and new ones refused, until mend()
//   stall()   everything is held back, in both directions, until mend(): nobody is told
//   mute()    what the server says is thrown away, until mend(), which resets the connections
//   lie()     the client hears something else than the server says, until mend(), which resets them
//   flood()   the same, and after the first lie the client hears more of them without an end
//
// Threads: any.
class Relay {
 public:
  explicit Relay(std::uint16_t target);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  std::uint16_t port() const { return port_.number(); }

  void cut() { mode_ = Mode::kCut; }
  void stall() { mode_ = Mode::kStall; }
  void mute() { mode_ = Mode::kMute; }
  // What the client hears instead, which may be the truth; called by the relay's thread. A flood
  // goes on with what is heard instead of nothing.
  using Lie = std::function<std::string(std::string_view said)>;
  void lie(Lie lie) { deceive_with(std::move(lie), Mode::kLie); }
  void flood(Lie lie) { deceive_with(std::move(lie), Mode::kFlood); }
  void mend();

 private:
  enum class Mode { kPass, kStall, kMute, kLie, kFlood, kCut };
  struct Pair {
    UniqueFd client, server;
    bool is_spoilt = false;  // the client did not hear what the server said: no use any more
  };

  void run();
  void accept_one();
  // False: it has ended.
  bool carry(Pair& pair, short client_events, short server_events);
  bool copy(int from, int to) const;
  void deceive_with(Lie lie, Mode mode);
  bool deceive(Pair& pair);

  const Port port_;
  const std::uint16_t target_;
  UniqueFd listener_;
  std::atomic<Mode> mode_{Mode::kPass};
  std::atomic<bool> ends_{false};
  std::mutex guard_;
  Lie lie_;                // guarded by guard_
  std::list<Pair> pairs_;  // of the thread
  std::thread thread_;
};

}  // namespace simba::servers
