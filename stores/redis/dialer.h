#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simba/redis.h"
#include "stores/redis/connection.h"
#include "stores/redis/tls.h"
#include "stores/redis/transport.h"

namespace simba::redis {

// Opens connections as the options say, and looks at who answers.
//
// Threads: any. Its calls block; only threads that may wait for a resolver make them.
// Errors: Error; never repeats a password.
class Dialer {
 public:
  // Throws Error (kMisconfigured) for options that cannot work.
  explicit Dialer(RedisOptions options);

  const RedisOptions& options() const { return options_; }
  const std::vector<Address>& hosts() const { return hosts_; }
  bool is_cluster() const { return options_.topology == RedisOptions::Topology::kCluster; }
  const std::string& where() const { return where_; }  // all of them, for errors

  enum class Purpose { kCommands, kSubscription };
  // Ready for commands; null: the server of the options, found through the sentinels if need be.
  std::unique_ptr<Connection> open(const Address* address, Purpose purpose,
                                   const kit::StopSignal& stop) const;
  void log(LogLevel level, const std::string& line) const;

 private:
  std::unique_ptr<Connection> connect(const Address& address, LocalTime deadline,
                                      const kit::StopSignal& stop) const;
  void greet(Connection& connection, Purpose purpose, LocalTime deadline,
             const kit::StopSignal& stop) const;
  void inspect(Connection& connection, const std::string& info, const Reply& time) const;
  std::unique_ptr<Connection> open_at(const Address& address, Purpose purpose, LocalTime deadline,
                                      const kit::StopSignal& stop) const;
  std::unique_ptr<Connection> open_master(Purpose purpose, LocalTime deadline,
                                          const kit::StopSignal& stop) const;
  // The master that it names.
  Address ask_sentinel(const Address& sentinel, LocalTime deadline,
                       const kit::StopSignal& stop) const;

  const RedisOptions options_;
  std::vector<Address> hosts_;
  std::string where_ = "redis at ";
  std::unique_ptr<TlsContext> tls_;                     // null: plain
  mutable std::atomic<std::size_t> first_sentinel_{0};  // to be asked: it was right the last time
  mutable std::atomic<bool> warned_of_eviction_{false}, warned_of_blindness_{false};
};

}  // namespace simba::redis
