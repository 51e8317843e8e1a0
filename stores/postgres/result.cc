#include "stores/postgres/result.h"

#include <string>

#include "simba/error.h"
#include "stores/postgres/wire.h"

namespace simba::postgres {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kCorrupt, "postgres: the server's answer " + why);
}

}  // namespace

void Result::check(int row, int column) const {
  if (row < rows() && column < PQnfields(get())) return;
  refuse("has " + std::to_string(rows()) + " rows of " + std::to_string(PQnfields(get())) +
         " columns, which is less than it should");
}

bool Result::is_null(int row, int column) const {
  check(row, column);
  return PQgetisnull(get(), row, column) != 0;
}

std::int64_t Result::number(int row, int column) const {
  if (is_null(row, column) || PQgetlength(get(), row, column) != 8) {
    refuse("holds no number in column " + std::to_string(column + 1) +
           "; are the times and the token of the table of type bigint?");
  }
  return read_int64(PQgetvalue(get(), row, column));
}

std::string_view Result::text(int row, int column) const {
  if (is_null(row, column)) refuse("holds no text in column " + std::to_string(column + 1));
  return {PQgetvalue(get(), row, column),
          static_cast<std::size_t>(PQgetlength(get(), row, column))};
}

}  // namespace simba::postgres
