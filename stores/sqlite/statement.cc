#include "stores/sqlite/statement.h"

namespace simba::sqlite {

Statement& Statement::begin() {
  connection_.forget_now();
  return go_on();
}

Statement& Statement::go_on() {
  if (statement_ == nullptr) {
    code_ = sqlite3_prepare_v3(connection_.db(), sql_, -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                               nullptr);
    if (code_ != SQLITE_OK) connection_.fail(code_, "prepare a statement");
  }
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL.
  sqlite3_bind_text(statement_, index, text.data() == nullptr ? "" : text.data(),
                    static_cast<int>(text.size()), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_, index, number);
  return *this;
}

bool Statement::step() {
  code_ = sqlite3_step(statement_);
  if (code_ == SQLITE_ROW) return true;
  reset();
  if (code_ == SQLITE_DONE) return false;
  connection_.fail(code_, "run a statement");
}

std::string_view Statement::text(int column) const noexcept {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace simba::sqlite
