#include "stores/mysql/prepared.h"

#include <algorithm>
#include <utility>

#include "stores/mysql/connection.h"

namespace simba::mysql {
namespace {

constexpr const char* kTooLong = "holds a text or a number that is too long";

}  // namespace

Prepared::Prepared(Connection& connection, const Text& text)
    : connection_(connection), text_(text), statement_(mysql_stmt_init(connection.get())) {
  if (statement_ == nullptr) throw Error(Errc::kUnreachable, "mysql: there is no memory left");
}

// After the connection, which has told its statements of its end: this sends nothing.
Prepared::~Prepared() { mysql_stmt_close(statement_); }

void Prepared::prepare(LocalTime deadline) {
  if (is_ready_) return;
  int error = 0;
  const Leash leash(connection_.get(), deadline);
  connection_.finish(
      mysql_stmt_prepare_start(&error, statement_, text_.sql.data(), text_.sql.size()),
      [&](int ready) { return mysql_stmt_prepare_cont(&error, statement_, ready); }, deadline);
  if (error != 0) fail();
  bind_all();
  is_ready_ = true;
}

void Prepared::bind_all() {
  if (mysql_stmt_param_count(statement_) != text_.arguments.size()) {
    refuse_answer(where(), "to a PREPARE counts other arguments than the statement has");
  }
  std::vector<MYSQL_BIND> binds;
  bind(arguments_, binds, text_.arguments);
  if (mysql_stmt_bind_param(statement_, binds.data()) != 0) fail();
  bind(columns_, column_binds_, text_.columns);
}

void Prepared::bind(std::vector<Cell>& cells, std::vector<MYSQL_BIND>& binds,
                    const std::string& kinds) {
  cells.resize(kinds.size());
  binds.assign(kinds.size(), MYSQL_BIND{});
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Cell& cell = cells[i];
    MYSQL_BIND& bind = binds[i];
    bind.length = &cell.length;
    bind.is_null = &cell.is_null;
    if (kinds[i] == 'n') {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.is_unsigned = 1;
      bind.buffer = &cell.number;
      continue;
    }
    cell.bytes.resize(kLongest);
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = cell.bytes.data();
    bind.buffer_length = kLongest;
  }
}

Prepared& Prepared::start() {
  given_ = 0;
  return *this;
}

Prepared& Prepared::text(std::string_view value) {
  Cell& cell = arguments_.at(given_++);
  if (value.size() > cell.bytes.size()) {
    throw Error(Errc::kMisconfigured, "mysql: a name or id has " + std::to_string(value.size()) +
                                          " bytes; at most " + std::to_string(kLongest));
  }
  std::copy(value.begin(), value.end(), cell.bytes.begin());
  cell.length = value.size();
  return *this;
}

Prepared& Prepared::number(std::uint64_t value) {
  arguments_.at(given_++).number = value;
  return *this;
}

void Prepared::run(LocalTime deadline) {
  connection_.check_not_late(deadline);
  int error = 0;
  const Leash leash(connection_.get(), deadline);
  connection_.finish(
      mysql_stmt_execute_start(&error, statement_),
      [&](int ready) { return mysql_stmt_execute_cont(&error, statement_, ready); }, deadline);
  if (error != 0) fail();
  if (columns_.empty()) return;
  // Now, because SET STATEMENT ... FOR does not tell of its columns before.
  if (mysql_stmt_field_count(statement_) != columns_.size()) {
    refuse_answer(where(), "has other columns than the statement");
  }
  if (mysql_stmt_bind_result(statement_, column_binds_.data()) != 0) fail();
  // To the very end of the answer: an error may follow the rows (a commit that failed).
  connection_.finish(
      mysql_stmt_store_result_start(&error, statement_),
      [&](int ready) { return mysql_stmt_store_result_cont(&error, statement_, ready); }, deadline);
  if (error != 0) fail();
}

bool Prepared::next() {
  const int got = mysql_stmt_fetch(statement_);
  if (got == 0) return true;
  if (got == MYSQL_DATA_TRUNCATED) refuse_answer(where(), kTooLong);
  if (got != MYSQL_NO_DATA) fail();
  mysql_stmt_free_result(statement_);
  return false;
}

std::string_view Prepared::where() const { return connection_.endpoint().where(); }

bool Prepared::is_null(unsigned column) const { return columns_.at(column).is_null != 0; }

std::uint64_t Prepared::number(unsigned column) const {
  if (is_null(column))
    refuse_answer(where(), "holds no number in column " + std::to_string(column + 1));
  return columns_[column].number;
}

std::string_view Prepared::text(unsigned column) const {
  if (is_null(column))
    refuse_answer(where(), "holds no text in column " + std::to_string(column + 1));
  // A connection of the user's may be told not to report what did not fit.
  if (columns_[column].length > kLongest) refuse_answer(where(), kTooLong);
  return {columns_[column].bytes.data(), columns_[column].length};
}

void Prepared::fail() {
  connection_.fail(mysql_stmt_errno(statement_), mysql_stmt_error(statement_));
}

}  // namespace simba::mysql
