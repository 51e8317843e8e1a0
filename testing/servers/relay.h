#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "testing/servers/port.h"
#include "testing/servers/unique_fd.h"

namespace simba::servers {

// A network between a client and a server that can be broken: connections to its port of 127.0.0.1
// go on to the target's.
//
//   cut()     connections are reset, and new ones refused, until mend()
//   reset()   connections are reset once; new ones are welcome
//   stall()   everything is held back, in both directions, until mend(): nobody is told
//   mute()    what the server says is thrown away, until mend(), which resets the connections
//   lie()     the client hears something else than the server says, until mend(), which resets them
//   flood()   the same, and after the first lie the client hears more of them without an end
//   delay(d)  what either side says arrives so much later, until delay(0)
//
// Threads: any.
class Relay {
 public:
  explicit Relay(std::uint16_t target);  // of 127.0.0.1
  // Throws std::runtime_error where there is no such host.
  Relay(const std::string& host, std::uint16_t target);
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
  void mend() { mode_ = Mode::kPass; }
  void reset() { resets_ = true; }
  void delay(std::chrono::milliseconds by) { delay_ = by; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Mode { kPass, kStall, kMute, kLie, kFlood, kCut };
  struct Late {
    Clock::time_point due;
    std::string bytes;
  };
  struct Pair {
    UniqueFd client, server;
    bool is_spoilt = false;  // the client did not hear what the server said: no use any more
    bool is_ending = false;  // one side has: what it said last is still passed on
    std::deque<Late> to_client, to_server;  // read, and not yet passed on
    std::string untold;                     // the rest of a lie
  };
  struct Address {
    sockaddr_storage bytes{};
    socklen_t size = 0;
  };

  explicit Relay(const Address& target);
  static Address find(const std::string& host, std::uint16_t port);
  void run();
  void reset_all();
  void accept_one();
  // False: it has ended.
  bool carry(Pair& pair, short client_events, short server_events);
  void deceive_with(Lie lie, Mode mode);
  bool deceive(Pair& pair);
  bool read_into(std::deque<Late>& queue, int from) const;
  static bool pass_on(std::deque<Late>& queue, int to);

  const Port port_;
  const Address target_;
  UniqueFd listener_;
  std::atomic<Mode> mode_{Mode::kPass};
  std::atomic<bool> resets_{false};
  std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds{0}};
  std::atomic<bool> ends_{false};
  std::mutex guard_;
  Lie lie_;                // guarded by guard_
  std::list<Pair> pairs_;  // of the thread
  std::thread thread_;
};

}  // namespace simba::servers
