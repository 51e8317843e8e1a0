#include "stores/mysql/literal.h"

namespace simba::mysql {

void append_hex(std::string& sql, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    sql += kDigits[byte >> 4];
    sql += kDigits[byte & 15];
  }
}

void append_literal(std::string& sql, std::string_view bytes) {
  sql += "x'";
  append_hex(sql, bytes);
  sql += '\'';
}

std::string literal(std::string_view bytes) {
  std::string sql;
  append_literal(sql, bytes);
  return sql;
}

}  // namespace simba::mysql
