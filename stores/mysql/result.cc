#include "stores/mysql/result.h"

#include <charconv>
#include <string>

namespace simba::mysql {

void refuse_answer(std::string_view where, const std::string& why) {
  throw Error(Errc::kCorrupt, "mysql at " + std::string(where) + ": the server's answer " + why);
}

std::uint64_t parse_number(std::string_view text, std::string_view where) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  refuse_answer(where,
                "holds no number where one should be; are the times and the token of the table "
                "of type BIGINT UNSIGNED?");
}

bool Result::next() {
  if (!rows_) return false;
  row_ = mysql_fetch_row(rows_.get());
  lengths_ = row_ != nullptr ? mysql_fetch_lengths(rows_.get()) : nullptr;
  return row_ != nullptr;
}

bool Result::is_null(unsigned column) const {
  if (row_ == nullptr || column >= mysql_num_fields(rows_.get())) {
    refuse_answer(where_, "has fewer rows or columns than it should");
  }
  return row_[column] == nullptr;
}

std::string_view Result::text(unsigned column) const {
  if (is_null(column))
    refuse_answer(where_, "holds no text in column " + std::to_string(column + 1));
  return {row_[column], lengths_[column]};
}

std::uint64_t Result::number(unsigned column) const { return parse_number(text(column), where_); }

}  // namespace simba::mysql
