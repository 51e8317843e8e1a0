#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "simba/time.h"
#include "stores/kit/worker.h"
#include "stores/redis/address.h"

struct addrinfo;

namespace simba::redis {

// Bytes to and from a server, in the clear; never raises SIGPIPE, and does not wait unless it says
// so.
//
// Threads: one may read while another writes.
// Errors: Error (kUnreachable) where the connection is gone.
class Transport {
 public:
  // `count` bytes were moved; where it is 0, `wants` are the events (as for poll()) to wait for.
  struct Moved {
    std::size_t count = 0;
    short wants = 0;
  };

  // Takes a connected socket.
  explicit Transport(int descriptor);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport();

  virtual Moved read(char* to, std::size_t most);
  virtual Moved write(const char* from, std::size_t count);
  // The same as read(), but waits up to kNap for the first byte: one system call where poll() and
  // read() are two. `wants` is 0 where it has waited.
  virtual Moved wait_and_read(char* to, std::size_t most);
  static constexpr milliseconds kNap{10};
  // Bytes are at hand that poll() does not know of.
  virtual bool has_more() const { return false; }

  int descriptor() const { return descriptor_; }
  // False: the other side has closed it. Looks, and does not wait.
  virtual bool is_open() const noexcept;
  // Whoever waits for it wakes up and finds it closed. From any thread.
  void shut_down() const noexcept;

 private:
  const int descriptor_;
};

// To the first of these that takes it. Throws Error (kUnreachable).
int connect_first(const addrinfo* found, LocalTime deadline, const kit::StopSignal& stop);
// Connects, blocking: names are resolved without a deadline. Throws Error (kUnreachable).
int connect_socket(const Address& address, LocalTime deadline, const kit::StopSignal& stop);

}  // namespace simba::redis
