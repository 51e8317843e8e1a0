#pragma once

#include <mysql.h>

#include <cstddef>

#include "simba/time.h"

namespace simba::mysql {

// A read or a write that would wait fails. libmariadb looks at what it cannot have at once for
// plain connections alone: within TLS its non-blocking calls need a socket that is like that.
void set_non_blocking(int socket) noexcept;

// What may be read of an answer, and until when.
//
// libmariadb hands back control only where it has to wait. Of a server that never stops sending it
// would read for ever, past every deadline, and keep it all. So each of its reads is looked at, and
// after one too many the connection is shut: the call then ends with what has come until then.
//
// Threads: the one that made it, which also makes the calls on the connection.
class Leash {
 public:
  // Enough for any answer to a batch of claims.
  static constexpr std::size_t kUsual = std::size_t{16} * 1024 * 1024;

  Leash(MYSQL* handle, LocalTime deadline, std::size_t most_bytes = kUsual);
  // Around a connect: TLS begins after the server's first word, and waits in a read where the
  // socket does, past every deadline.
  void let_no_read_wait() noexcept { lets_no_read_wait_ = true; }
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;
  ~Leash();

  enum class End { kNone, kLate, kTooLong };
  // Of the one that is around the calling thread now.
  static End end_of(const MYSQL* handle) noexcept;

 private:
  static void look(int mode, MYSQL* handle, const unsigned char* bytes, std::size_t size);
  void count(std::size_t size) noexcept;

  MYSQL* const handle_;
  const LocalTime deadline_;
  std::size_t left_;
  bool lets_no_read_wait_ = false;
  End end_ = End::kNone;
  Leash* const outer_;  // of another connection
  static thread_local Leash* innermost;
};

}  // namespace simba::mysql
