#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simba/export.h"
#include "simba/log.h"
#include "simba/store.h"

struct st_mysql;  // libmariadb's MYSQL

// The store for MariaDB and MySQL: one table, decided by the server's clock, shared with JVM Simba.
//
// What it holds through a crash, a failover, a cluster, an old table: docs/mysql.md.
namespace simba::inline v0 {

// Opens a connection of yours: mysql_init(), mysql_options(MYSQL_OPT_NONBLOCK, 0),
// mysql_real_connect(). The store owns what it gets and closes it; it takes texts of several
// statements from then on, and is not made anew by the library (MYSQL_OPT_RECONNECT). Called on
// threads of the store, may block, throws Error where it fails.
using MysqlConnector = std::function<st_mysql*()>;

struct SIMBA_EXPORT MysqlOptions {
  enum class Tls {
    kVerify,   // the server proves with its certificate that it is the host that was asked for
    kRequire,  // encrypted, and nobody knows to whom
    kDisable,
  };
  enum class Dialect {
    kDetect,   // looks which server answers
    kMariadb,  // INSERT ... RETURNING, limits within statements
    kMysql,    // what both servers understand
  };
  using Host = std::pair<std::string, std::uint16_t>;

  std::vector<Host> hosts{{"127.0.0.1", 3306}};  // tried in order; of several, one that writes
  std::string socket;                            // a UNIX socket instead
  std::string user, password;
  std::string database = "simba_db";
  std::string table = "simba_mutex";
  Tls tls = Tls::kVerify;        // not on a UNIX socket
  std::string root_certificate;  // file of the authority; empty: the system's
  std::string certificate, key;  // files of ours, where the server wants them
  Dialect dialect = Dialect::kDetect;
  std::size_t max_id_length = 128;  // 32 for a table of the JVM project that cannot be altered
  std::size_t connections = 8;      // at most, one more waits for the doorbell; 2 to 1000
  milliseconds connect_timeout{5'000};
  MysqlConnector connector;  // instead of all that tells how to connect
  LogSink log;               // what a person should know
};

// `mysql://user:password@host:port,host:port/database?sslmode=verify-full&table=simba_mutex`, or
// `mariadb://`. docs/mysql.md lists the parameters. Throws Error (kMisconfigured) for what it does
// not know; never repeats a value.
SIMBA_EXPORT MysqlOptions mysql_options(std::string_view url);

// Does not connect: trouble shows in the calls, and they succeed once it has passed. The first
// connection makes the table where it is missing and the user may.
// Errors: kMisconfigured for options that cannot work.
SIMBA_EXPORT std::shared_ptr<Store> open_mysql(const MysqlOptions& options);

// Makes the database and the table, or brings a table of the JVM project up to date in place: wider
// ids, the column of the tokens. No row is lost, contenders may go on meanwhile. Returns the
// statements that it ran, one a line, each with its semicolon; empty: there was nothing to do.
// Errors: as a call of the store, kDenied with the statements where a privilege is missing.
SIMBA_EXPORT std::string create_mysql_table(const MysqlOptions& options);
// The same without a server: for a new table.
SIMBA_EXPORT std::string mysql_schema(const MysqlOptions& options);

// A row as it stands in the table, with what no contender needs.
struct MysqlRow {
  MutexOwner owner;
  std::optional<std::uint32_t> version;  // grows with each write; none: there is no such row
  StoreTime now{};                       // of the server, when it read the row
};

// Reads it over a connection of its own, and changes nothing: for who looks at a mutex as JVM Simba
// does. Waits for the connect timeout at most, and as long again for the answer. SELECT is enough.
// Errors: as a call of the store, kMisconfigured where there is no table.
SIMBA_EXPORT MysqlRow read_mysql_row(const MysqlOptions& options, std::string_view mutex);

}  // namespace simba::inline v0
