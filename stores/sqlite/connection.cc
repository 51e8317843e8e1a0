#include "stores/sqlite/connection.h"

#include "stores/sqlite/failure.h"

namespace simba::sqlite {

Connection::Connection(const Location& location, SqliteOptions::Synchronous synchronous,
                       const Host& host, LocalTime deadline)
    : location_(location), host_(host), log_(busy_), clock_{host.boot_ms}, guard_(location) {
  busy_.start(deadline);
  try {
    open();
    set_up(synchronous);
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

// No checkpoint at the end: it would cost a short-lived process more than all its claims. The log
// stays beside the file, which also lets readers without write permission in.
Connection::~Connection() { sqlite3_close(db_); }

void Connection::open() {
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (location_.writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
  const int code = sqlite3_open_v2(location_.file.c_str(), &db_, flags, nullptr);
  if (code != SQLITE_OK) fail(code, "open the database");
  sqlite3_busy_handler(db_, BusyWait::handle, &busy_);
}

void Connection::set_up(SqliteOptions::Synchronous synchronous) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
  // "Deterministic" means within one statement, which holds; it lets SQLite ask once.
  sqlite3_create_function_v2(db_, "simba_now", 0, kFlags | SQLITE_DETERMINISTIC, &clock_, sql_now,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(db_, "simba_acquired", 1, kFlags, &term_.acquired_at, sql_note,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(db_, "simba_token", 1, kFlags, &term_.token, sql_note, nullptr,
                             nullptr, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int persist = 1;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
  log_.attach(db_);
  sqlite3_commit_hook(db_, refuse_commit, this);
  execute(synchronous == SqliteOptions::Synchronous::kFull ? "PRAGMA synchronous = FULL"
                                                           : "PRAGMA synchronous = NORMAL");
  execute("PRAGMA journal_size_limit = 4194304");
}

void Connection::check_deadline() const {
  if (local_now() < busy_.deadline()) return;
  throw Error(Errc::kTimeout, "sqlite: the deadline of the call passed; nothing was changed in " +
                                  location_.given.string());
}

void Connection::check_files() {
  forget_now();
  if (!guard_.is_unchanged(now())) fail_replaced();
}

void Connection::fail_replaced() {
  throw Error(Errc::kReplaced,
              "sqlite: " + location_.given.string() + " was replaced before it was written to");
}

// Not 0: SQLite rolls back. While the file is set up there is nothing yet to compare with.
int Connection::refuse_commit(void* self) {
  auto& connection = *static_cast<Connection*>(self);
  const bool asks = connection.busy_.has_waited() && connection.guard_.database();
  return asks && !connection.guard_.is_unchanged(connection.now()) ? 1 : 0;
}

void Connection::execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, std::string("run \"") + sql + '"');
}

std::string Connection::query(const char* sql) {
  std::string result;
  const auto take = [](void* out, int, char** values, char**) {
    if (values[0] != nullptr) *static_cast<std::string*>(out) = values[0];
    return 0;
  };
  const int code = sqlite3_exec(db_, sql, take, &result, nullptr);
  if (code != SQLITE_OK) fail(code, std::string("run \"") + sql + '"');
  return result;
}

void Connection::fail(int code, const std::string& doing) {
  if (code == SQLITE_CONSTRAINT_COMMITHOOK) fail_replaced();
  broken_ = broken_ || breaks_connection(code);
  throw failure(db_, code, location_.given.string(), doing);
}

void Connection::sql_now(sqlite3_context* context, int, sqlite3_value**) {
  sqlite3_result_int64(context, static_cast<Clock*>(sqlite3_user_data(context))->now());
}

void Connection::sql_note(sqlite3_context* context, int, sqlite3_value** arguments) {
  *static_cast<std::int64_t*>(sqlite3_user_data(context)) = sqlite3_value_int64(arguments[0]);
  sqlite3_result_value(context, arguments[0]);
}

Transaction::Transaction(Connection& connection, Kind kind) : connection_(connection) {
  connection_.execute(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // SQLite itself rolls back after some errors.
  if (sqlite3_get_autocommit(connection_.db()) != 0) return;
  if (sqlite3_exec(connection_.db(), "ROLLBACK", nullptr, nullptr, nullptr) != SQLITE_OK) {
    connection_.mark_broken();
  }
}

void Transaction::commit() { connection_.execute("COMMIT"); }

}  // namespace simba::sqlite
