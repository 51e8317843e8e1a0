#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace simba::postgres {

// Rows of an answer in the binary format. What is not there, or not of the kind asked for, is Error
// (kCorrupt): a reply is never believed half.
//
// Threads: one at a time.
class Result {
 public:
  Result() = default;
  explicit Result(PGresult* result) : result_(result) {}

  PGresult* get() const { return result_.get(); }
  int rows() const { return PQntuples(result_.get()); }
  bool is_null(int row, int column) const;
  std::int64_t number(int row, int column) const;
  std::string_view text(int row, int column) const;

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  void check(int row, int column) const;

  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace simba::postgres
