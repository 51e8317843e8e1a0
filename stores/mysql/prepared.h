#pragma once

#include <mysql.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/time.h"

namespace simba::mysql {

class Connection;

// A statement that a connection has prepared, its arguments and the one row of its answer. Bound
// once: what changes from call to call is only what the buffers hold.
//
//   prepared.start().text(mutex).number(ttl).run(deadline); prepared.next(); prepared.number(2);
//
// Threads: one at a time. Errors: as the connection's.
class Prepared {
 public:
  // Each letter of `arguments` is one: s text, n number.
  struct Text {
    std::string sql, arguments;
    std::string columns;  // likewise; empty: it gives no rows
  };

  Prepared(Connection& connection, const Text& text);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared();

  // Does nothing but the first time.
  void prepare(LocalTime deadline);

  Prepared& start();  // no argument is given yet
  Prepared& text(std::string_view value);
  Prepared& number(std::uint64_t value);
  void run(LocalTime deadline);

  bool next();  // another row
  bool is_null(unsigned column) const;
  std::uint64_t number(unsigned column) const;
  std::string_view text(unsigned column) const;
  std::string_view where() const;  // the server, for errors
  std::uint64_t changed() const { return mysql_stmt_affected_rows(statement_); }
  std::uint64_t id() const { return mysql_stmt_insert_id(statement_); }

 private:
  static constexpr std::size_t kLongest = 1'024;  // of a text, with room for other encodings
  struct Cell {
    std::vector<char> bytes;
    std::uint64_t number = 0;
    unsigned long length = 0;
    my_bool is_null = 0;
  };
  static void bind(std::vector<Cell>& cells, std::vector<MYSQL_BIND>& binds,
                   const std::string& kinds);
  void bind_all();
  [[noreturn]] void fail();

  Connection& connection_;
  const Text& text_;
  MYSQL_STMT* statement_;
  bool is_ready_ = false;
  std::vector<Cell> arguments_, columns_;
  std::vector<MYSQL_BIND> column_binds_;
  std::size_t given_ = 0;
};

}  // namespace simba::mysql
