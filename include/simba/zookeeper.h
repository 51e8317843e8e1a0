#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "simba/export.h"
#include "simba/store.h"
#include "simba/time.h"

// The ZooKeeper store: a queue of ephemeral nodes in the layout of Curator's LeaderLatch, so that
// contenders of both elect one leader between them.
//
// What it holds through a crash, a partition, a failover, an expired session: docs/zookeeper.md.
namespace simba::inline v0 {

struct SIMBA_EXPORT ZookeeperOptions {
  enum class Acl {
    kAutomatic,    // kCreatorRead with a user, kOpen without
    kOpen,         // anybody may do anything: what Curator does unless it is told otherwise
    kCreatorRead,  // the user may do anything, anybody may read
    kCreator,      // the user alone, also for reading
  };

  std::string servers = "127.0.0.1:2181";  // host:port,host:port
  std::string chroot;                      // a node that exists, as in "/app"; empty: none
  std::string base = "/simba";             // mutexes are nodes below it
  std::string user, password;              // digest authentication; empty: none
  Acl acl = Acl::kAutomatic;
  // What the session is asked to last without a sign of life, T. The server may change it. A lease
  // is at most 5/6 T - tick, whatever ttl and transition say.
  milliseconds session_timeout{20'000};
  milliseconds tick{2'000};  // the tickTime of the servers, or more
  // TLS, where the client library was built with it: PEM files, all three or none. The library
  // takes any certificate of this authority, or of one that the system trusts, whatever host it
  // names.
  std::string tls_ca, tls_certificate, tls_key;
};

// `zookeeper://user:password@host:port,host:port/chroot?session-timeout=20000&tick=2000&base=/simba`
// and `acl` (open, creator-read, creator), `password-file`, and for TLS `tls` (without-host-name),
// `tls-ca`, `tls-cert` and `tls-key`. Throws Error (kMisconfigured) for what it does not know, and
// for TLS where the client library has none; never repeats a value.
SIMBA_EXPORT ZookeeperOptions zookeeper_options(std::string_view url);

// Does not connect: trouble shows in the calls, and they succeed once it has passed. All stores of
// a process with the same options share one session.
// Errors: kMisconfigured for options that cannot work.
SIMBA_EXPORT std::shared_ptr<Store> open_zookeeper(const ZookeeperOptions& options);

}  // namespace simba::inline v0
