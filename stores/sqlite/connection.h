#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "simba/sqlite.h"
#include "simba/time.h"
#include "stores/sqlite/busy_wait.h"
#include "stores/sqlite/file_guard.h"
#include "stores/sqlite/host.h"
#include "stores/sqlite/location.h"
#include "stores/sqlite/log_keeper.h"

namespace simba::sqlite {

// One connection to the file, with the store's clock in it.
//
// The SQL function simba_now() is CLOCK_BOOTTIME in milliseconds, read at its first use inside a
// statement, when the statement has its lock, and the same until the statement ends.
//
// simba_acquired(x) and simba_token(x) are x, and leave it in term(): what a statement writes comes
// out without RETURNING, which costs a sixth of a claim.
//
// Threads: one at a time. Errors: Error, see failure.h; after some the connection is_broken().
class Connection {
 public:
  Connection(const Location& location, SqliteOptions::Synchronous synchronous, const Host& host,
             LocalTime deadline);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Begins a call: from now on locks are waited for until the deadline.
  void start(LocalTime deadline) noexcept { busy_.start(deadline); }
  void check_deadline() const;
  // Throws Error (kReplaced) where the paths lead to other files by now. One who writes asks once
  // it has the lock of the file: while it waited, somebody may have put another in its place. A
  // transaction that waited is asked once more by SQLite, just before the first byte of the log.
  void check_files();

  void execute(const char* sql);
  std::string query(const char* sql);  // the first column of the first row; "" for none
  [[noreturn]] void fail(int code, const std::string& doing);
  void mark_broken() noexcept { broken_ = true; }

  // The times of the statement that runs or has just run.
  void forget_now() noexcept { clock_.read = false; }
  std::int64_t now() noexcept { return clock_.now(); }
  // The last values the statement passed to simba_acquired() and simba_token().
  struct Term {
    std::int64_t acquired_at = 0;
    std::int64_t token = 0;
  };
  const Term& term() const noexcept { return term_; }

  sqlite3* db() const noexcept { return db_; }
  const Host& host() const noexcept { return host_; }
  const Location& location() const noexcept { return location_; }
  BusyWait& busy() noexcept { return busy_; }
  FileGuard& guard() noexcept { return guard_; }
  bool is_broken() const noexcept { return broken_; }

 private:
  struct Clock {
    std::int64_t (*boot_ms)();
    std::int64_t value = 0;
    bool read = false;

    std::int64_t now() noexcept {
      if (!read) value = boot_ms();
      read = true;
      return value;
    }
  };

  void open();
  void set_up(SqliteOptions::Synchronous synchronous);
  [[noreturn]] void fail_replaced();
  static int refuse_commit(void* self);
  static void sql_now(sqlite3_context* context, int, sqlite3_value**);
  static void sql_note(sqlite3_context* context, int, sqlite3_value** arguments);

  const Location& location_;
  const Host& host_;
  BusyWait busy_;
  LogKeeper log_;
  Clock clock_;
  Term term_;
  FileGuard guard_;
  sqlite3* db_ = nullptr;
  bool broken_ = false;
};

// BEGIN IMMEDIATE, COMMIT; rolled back when it is left in any other way.
//
// Threads: one at a time.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };
  Transaction(Connection& connection, Kind kind);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection& connection_;
};

}  // namespace simba::sqlite
