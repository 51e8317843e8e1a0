#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/export.h"
#include "simba/log.h"
#include "simba/store.h"
#include "simba/time.h"

// The Redis store: three scripts decided by the server's clock, waiters woken by pub/sub, in the
// layout of JVM Simba, so that contenders of both share a mutex.
//
// What it holds through a crash, a failover, a restart without data: docs/redis.md.
namespace simba::inline v0 {

struct SIMBA_EXPORT RedisOptions {
  enum class Topology {
    kServer,    // hosts[0]
    kSentinel,  // hosts are sentinels, which know where `master` is
    kCluster,   // hosts are some of the cluster's nodes
  };
  enum class Transport { kPlain, kTls };
  enum class Queue {
    kShared,  // the queue of JVM Simba up to 3.1: its waiters are woken too
    kOwn,     // a queue that JVM Simba 3.2 and 3.3 do not delete; waiters up to 3.1 poll
  };
  enum class RestartGuard {
    kOn,   // a server that may have forgotten leases grants only when these have ended
    kOff,  // at once
  };

  Topology topology = Topology::kServer;
  std::vector<std::string> hosts{"127.0.0.1:6379"};  // host:port, or /path/of/a/socket
  std::string master;                                // the name that the sentinels know
  std::string user, password;                        // empty: none
  std::string sentinel_user, sentinel_password;      // for the sentinels themselves
  int database = 0;

  Transport transport = Transport::kPlain;
  std::string ca_file;              // who vouches for the server; empty: the system's authorities
  std::string cert_file, key_file;  // where the server wants to know who we are
  std::string server_name;          // in its certificate; empty: the host

  std::size_t replicas = 0;  // so many must have a grant or renewal before it counts (WAIT)
  Queue queue = Queue::kShared;
  RestartGuard restart_guard = RestartGuard::kOn;
  milliseconds connect_timeout{5'000};
  std::string client_name = "simba";  // as CLIENT LIST shows it
  LogSink log;                        // what happens to connections, and what a person should know
};

// `redis://user:password@host:port/database`, `rediss://` for TLS, `redis:///path/of/socket`,
// `redis+sentinel://host,host/master`, `redis+cluster://host,host`, `rediss+...` for TLS. Throws
// Error (kMisconfigured) for what it does not know; never repeats a value.
SIMBA_EXPORT RedisOptions redis_options(std::string_view url);

// Does not connect: trouble shows in the calls, and they succeed once it has passed. Stores of a
// process with the same options share their connections.
// Errors: kMisconfigured for options that cannot work.
SIMBA_EXPORT std::shared_ptr<Store> open_redis(const RedisOptions& options);

}  // namespace simba::inline v0
