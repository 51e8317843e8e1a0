#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "simba/time.h"

// What `simba` and its guardian say to each other: packets of fixed size through a socket pair, so
// that the end of either process is seen by the other.
namespace simba::cli {

struct Order {
  enum class Kind : std::uint32_t {
    kStart,     // the mutex is held: run the program, until `deadline`
    kDeadline,  // the lease was renewed. Answered by kAlive
    kSignal,    // pass it to the program's group
    kContinue,  // the program, which was stopped
    kEnd,  // ownership is over: TERM now, KILL at `deadline` or after the time to kill, if earlier
  };
  Kind kind{};
  std::int32_t signal = 0;
  LocalTime deadline{};
  bool foreground = false;        // kStart: of the terminal
  std::array<char, 24> token{};   // kStart
  std::array<char, 264> owner{};  // kStart
};

struct Report {
  enum class Kind : std::uint32_t {
    kAlive,
    kStarted,     // value: the process group
    kNotStarted,  // value: errno
    kStopped,     // value: the signal
    kLeftBehind,  // the program has ended, others it started have not: they are being ended
    kEnded,       // nobody is left. value: the program's wait status
  };
  Kind kind{};
  std::int32_t value = 0;
  bool out_of_time = false;  // kEnded: the deadline came first
};

// One end. Threads: one.
class GuardianLink {
 public:
  explicit GuardianLink(int fd) : fd_(fd) {}
  ~GuardianLink();
  GuardianLink(GuardianLink&&) noexcept;
  GuardianLink& operator=(GuardianLink&&) = delete;

  struct Pair;
  static Pair make();

  int fd() const { return fd_; }
  // Never blocks. What a dead peer misses does not matter: its death is seen elsewhere.
  void send(const Order& order) const;
  void send(const Report& report) const;

  template <class Packet>
  struct Received {
    std::optional<Packet> packet;
    bool closed = false;
  };
  // Never blocks; neither a packet nor closed: nothing there yet.
  Received<Order> receive_order() const;
  Received<Report> receive_report() const;

 private:
  int fd_;
};

struct GuardianLink::Pair {
  GuardianLink simba, guardian;
};

}  // namespace simba::cli
