#pragma once

#include <libpq-fe.h>

#include <string>
#include <string_view>

#include "simba/error.h"

namespace simba::postgres {

// Five characters that PostgreSQL and its relatives give every error; the text differs by language.
struct SqlState {
  static constexpr std::string_view kMissingTable = "42P01";
  static constexpr std::string_view kLocked = "55P03";
  static constexpr std::string_view kReadOnly = "25006";
};

// An error the server gave a statement.
class Failure : public Error {
 public:
  Failure(Errc code, const std::string& what, std::string_view state)
      : Error(code, what), state_(state) {}
  bool is(std::string_view state) const noexcept { return state_ == state; }
  // The server, or this connection to it, does not write.
  bool is_read_only() const noexcept { return is(SqlState::kReadOnly); }
  const std::string& state() const noexcept { return state_; }

 private:
  std::string state_;
};

// What an error of the server means to a caller: which kind of trouble, where, and what to do.
Failure failure(const PGresult* result, const std::string& where, const std::string& table);
// The same of its fields.
Failure server_failure(std::string_view state, std::string_view text, const std::string& where,
                       const std::string& table);
// The same of an attempt to connect: libpq has only a text for it, which must have been made with
// PQERRORS_VERBOSE.
Error connect_failure(const std::string& text, const std::string& where);
// The connection is gone; whether the server acted is unknown.
Error lost(const PGconn* connection, const std::string& where);

std::string_view sql_state(const PGresult* result);
// After this the connection is not used again.
bool breaks_connection(std::string_view state);

// The statements that make and grant the table, for an administrator to paste.
std::string grant_advice(const std::string& table, const std::string& role);

}  // namespace simba::postgres
