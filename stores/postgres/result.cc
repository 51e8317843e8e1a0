#include "stores/postgres/result.h"

#include "stores/postgres/wire.h"

namespace simba::postgres {

Error Result::corrupt(const std::string& what) const {
  return {Errc::kCorrupt, "postgres at " + std::string(where_) + ": " + what};
}

void Result::check(int row, int column) const {
  if (row < rows() && column < PQnfields(get())) return;
  throw corrupt("the server's answer has " + std::to_string(rows()) + " rows of " +
                std::to_string(PQnfields(get())) + " columns, which is less than it should");
}

bool Result::is_null(int row, int column) const {
  check(row, column);
  return PQgetisnull(get(), row, column) != 0;
}

std::int64_t Result::number(int row, int column) const {
  if (is_null(row, column) || PQgetlength(get(), row, column) != 8) {
    throw corrupt("the server's answer holds no number in column " + std::to_string(column + 1) +
                  "; are the times and the token of the table of type bigint?");
  }
  return read_int64(PQgetvalue(get(), row, column));
}

std::string_view Result::text(int row, int column) const {
  if (is_null(row, column)) {
    throw corrupt("the server's answer holds no text in column " + std::to_string(column + 1));
  }
  return {PQgetvalue(get(), row, column),
          static_cast<std::size_t>(PQgetlength(get(), row, column))};
}

}  // namespace simba::postgres
