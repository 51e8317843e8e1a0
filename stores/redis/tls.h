#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>

#include "simba/redis.h"
#include "stores/redis/transport.h"

namespace simba::redis {

// Whom to believe, and who we are.
//
// Threads: any.
class TlsContext {
 public:
  // Throws Error (kMisconfigured) for a file that cannot be used; names it.
  explicit TlsContext(const RedisOptions& options);

  SSL_CTX* get() const { return context_.get(); }
  const std::string& server_name() const { return server_name_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  const std::string server_name_;
};

// The same as its base, encrypted, with a server that has proved to be the one it was asked for.
//
// Threads: as its base: a lock keeps reading and writing apart, neither of which waits.
class TlsTransport : public Transport {
 public:
  // Takes a connected socket; shakes hands. Errors: kMisconfigured where the server does not prove
  // who it is, kUnreachable.
  TlsTransport(int descriptor, const TlsContext& context, const Address& address,
               LocalTime deadline, const kit::StopSignal& stop);

  Moved read(char* to, std::size_t most) override;
  Moved wait_and_read(char* to, std::size_t most) override { return read(to, most); }
  Moved write(const char* from, std::size_t count) override;
  bool has_more() const override;
  bool is_open() const noexcept override;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  void shake_hands(LocalTime deadline, const kit::StopSignal& stop);
  Moved moved(int result);

  mutable std::mutex guard_;
  std::unique_ptr<SSL, Free> ssl_;  // guarded by guard_
};

}  // namespace simba::redis
