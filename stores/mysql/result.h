#pragma once

#include <mysql.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "simba/error.h"

namespace simba::mysql {

// `where` is the server.
[[noreturn]] void refuse_answer(std::string_view where, const std::string& why);
std::uint64_t parse_number(std::string_view text, std::string_view where);

// Rows of an answer, one after the other, and what the statement changed. What is not there, or not
// of the kind asked for, is Error (kCorrupt): a reply is never believed half.
//
// Threads: one at a time.
class Result {
 public:
  Result() = default;
  // `where` is the server, for errors; it outlives this.
  Result(MYSQL_RES* rows, std::uint64_t changed, std::uint64_t id, std::string_view where)
      : rows_(rows), changed_(changed), id_(id), where_(where) {}

  bool next();
  bool is_null(unsigned column) const;
  std::uint64_t number(unsigned column) const;
  std::string_view text(unsigned column) const;

  std::string_view where() const { return where_; }
  std::uint64_t changed() const { return changed_; }  // rows
  std::uint64_t id() const { return id_; }            // what LAST_INSERT_ID(x) was given

 private:
  struct Free {
    void operator()(MYSQL_RES* rows) const { mysql_free_result(rows); }
  };
  std::unique_ptr<MYSQL_RES, Free> rows_;
  MYSQL_ROW row_ = nullptr;
  const unsigned long* lengths_ = nullptr;
  std::uint64_t changed_ = 0, id_ = 0;
  std::string_view where_;
};

}  // namespace simba::mysql
