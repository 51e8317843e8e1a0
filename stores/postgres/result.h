#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "simba/error.h"

namespace simba::postgres {

// Rows of an answer in the binary format. What is not there, or not of the kind asked for, is Error
// (kCorrupt): a reply is never believed half.
//
// Threads: one at a time.
class Result {
 public:
  Result() = default;
  // `where` is the server, for errors; it outlives this.
  explicit Result(PGresult* result, std::string_view where = "an unnamed server")
      : result_(result), where_(where) {}

  PGresult* get() const { return result_.get(); }
  int rows() const { return PQntuples(result_.get()); }
  bool is_null(int row, int column) const;
  std::int64_t number(int row, int column) const;
  std::string_view text(int row, int column) const;
  // What is wrong with the answer, as an error that names the server.
  Error corrupt(const std::string& what) const;

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  void check(int row, int column) const;

  std::unique_ptr<PGresult, Clear> result_;
  std::string_view where_;
};

}  // namespace simba::postgres
