#pragma once

#include <string>

#include "simba/error.h"
#include "stores/mysql/endpoint.h"

namespace simba::mysql {

// Numbers of both servers and of libmariadb; the text differs by language.
namespace number {
inline constexpr unsigned kDatabaseDenied = 1044, kUnknownDatabase = 1049, kDuplicateColumn = 1060,
                          kUnknownThread = 1094, kKillDenied = 1095, kTableDenied = 1142,
                          kMissingTable = 1146, kLockWait = 1205, kDeadlock = 1213,
                          kReadOnly = 1290, kInterrupted = 1317, kTooManyStatements = 1461,
                          kReadOnlySession = 1792, kReadOnlyMode = 1836, kStatementTime = 1969,
                          kSelectTime = 3024, kLockDeadlock = 3058;
}  // namespace number

// An error the server gave a statement.
class Failure : public Error {
 public:
  Failure(Errc code, const std::string& what, unsigned number)
      : Error(code, what), number_(number) {}
  unsigned number() const noexcept { return number_; }
  bool is(unsigned number) const noexcept { return number_ == number; }
  // The statement's own limit ended it: somebody held the row, or the server was slow.
  bool is_locked() const noexcept;
  // The server, or this connection to it, does not write.
  bool is_read_only() const noexcept;

 private:
  unsigned number_;
};

// What an error means to a caller: which kind of trouble, where, and what to do.
Failure failure(unsigned number, const std::string& text, const Endpoint& endpoint);
// The same of an attempt to connect.
Failure connect_failure(unsigned number, const std::string& text, const Endpoint& endpoint);

// After this the connection is not used again.
bool breaks_connection(unsigned number);

}  // namespace simba::mysql
