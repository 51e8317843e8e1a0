#pragma once

#include <array>
#include <cstddef>

#include "simba/time.h"

namespace simba::zookeeper {

// How long the session certainly lives, by what the servers have answered.
//
// The leader ends a session T after it last heard of it. It hears of it by the server our
// connection hangs on, which reports, every half tick, whose requests it has had. So a request
// alone proves nothing: a server cut off from the leader answers reads and pings all the same. But
// an answered *write* has been to the leader and back, and everything that server had reported
// before arrived before it. Hence, with a write sent at w and an earlier request sent at a:
//
//     a              w - tick       w                              a + T
//     |-- answered ---|             |-- committed                     |-- ends, at the earliest
//                     |-- reported -| at the latest
//
// It counts only if its answer was here by w - tick: one that was long on its way may have reached
// that server together with the write. A request goes out every T/6, so a is about w - tick - T/6,
// and the session lives until w + 5/6 T - tick. That is the lease; it is never taken to be longer.
//
// A plain value, counted from before each request was sent. Threads: one at a time.
class SessionLease {
 public:
  // A new session, made by a request that was sent then: the leader itself made it.
  void begin(LocalTime sent, milliseconds timeout, milliseconds tick);
  // A request of any kind, and when its answer was here.
  void answered(LocalTime sent, LocalTime heard);
  void committed(LocalTime sent);  // a write
  // The servers end the session sooner from here on.
  void shorten(milliseconds timeout);

  milliseconds length() const { return timeout_ * 5 / 6 - tick_; }
  milliseconds timeout() const { return timeout_; }
  LocalTime until() const { return until_; }

 private:
  // Four in a tick are remembered, however many there are: the one that counts is a tick old.
  static constexpr std::size_t kRemembered = 16;
  static constexpr int kInATick = 4;

  milliseconds timeout_{}, tick_{};
  LocalTime begun_{}, newest_{};
  struct Request {
    LocalTime sent, heard;
  };
  std::array<Request, kRemembered> answered_{};
  std::size_t next_ = 0;
  LocalTime until_{};
};

}  // namespace simba::zookeeper
