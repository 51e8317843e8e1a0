#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "simba/export.h"
#include "simba/log.h"
#include "simba/store.h"

struct pg_conn;  // libpq's PGconn

// The PostgreSQL store: one table, decided by the server's clock, waiters woken by NOTIFY.
//
// What it holds through a crash, a failover, a pooler, a locked row: docs/postgres.md.
namespace simba::inline v0 {

// Opens a connection of yours, with PQconnectdb() or what your program has for it. The store owns
// what it gets and closes it with PQfinish(). Called on threads of the store, may block, throws
// Error where it fails.
using PostgresConnector = std::function<pg_conn*()>;

struct SIMBA_EXPORT PostgresOptions {
  enum class Pooler {
    kDetect,       // looks whether a pooler answers instead of the server
    kNone,         // the server itself, or a pooler that keeps a session to one server connection
    kTransaction,  // a pooler that does not: unnamed statements, and waiters poll
  };

  std::string conninfo;         // of libpq: a URL or "host=... dbname=..."; may hold a password
  PostgresConnector connector;  // instead of conninfo
  std::string table = "simba_mutex";  // or schema.table
  Pooler pooler = Pooler::kDetect;
  std::size_t connections = 8;  // at most, one more listens once somebody waits; 2 to 1000
  LogSink log;                  // what happens to connections
};

// `postgresql://user@host:port/database?sslmode=verify-full&table=simba_mutex&pooler=detect`: a URL
// of libpq with three parameters of ours, `table`, `pooler` (detect, none, transaction) and
// `connections`. sslmode is verify-full unless the URL says otherwise. Throws Error
// (kMisconfigured) for what it does not know; never repeats a value.
SIMBA_EXPORT PostgresOptions postgres_options(std::string_view url);

// Does not connect: trouble shows in the calls, and they succeed once it has passed. The first
// connection makes the table where it is missing and the role may.
// Errors: kMisconfigured for options that cannot work.
SIMBA_EXPORT std::shared_ptr<Store> open_postgres(const PostgresOptions& options);

}  // namespace simba::inline v0
