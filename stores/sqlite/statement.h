#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string_view>

#include "stores/sqlite/connection.h"

namespace simba::sqlite {

// A prepared statement, made at its first use and kept with its connection. Text is bound, never
// pasted and never copied: it outlives the run.
//
//   statement.bind(1, mutex);
//   while (statement.step()) use(statement.integer(0));
//
// A statement that was stepped to its end is ready for the next run; one that was not, after its
// destructor or reset().
//
// Threads: one at a time.
class Statement {
 public:
  Statement(Connection& connection, const char* sql) : connection_(connection), sql_(sql) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  // The clock is read anew by each run; by one that goes on, only where the statement before it has
  // not read it: both speak of one moment.
  Statement& begin();
  Statement& go_on();
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::int64_t number);

  // True: a row. False: the end, and where no transaction is open, the commit. Throws otherwise.
  bool step();
  void reset() noexcept { sqlite3_reset(statement_); }
  // The result of a run that threw.
  int code() const noexcept { return code_; }

  std::int64_t integer(int column) const noexcept {
    return sqlite3_column_int64(statement_, column);
  }
  std::string_view text(int column) const noexcept;

 private:
  Connection& connection_;
  const char* const sql_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

}  // namespace simba::sqlite
