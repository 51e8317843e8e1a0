#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "simba/time.h"

// A true answer of a server, made to tell of somebody else. Whatever the protocol is, its frame
// stays as it was: only bytes of the same number are exchanged.
namespace simba {

struct Forged {
  std::string answer;
  int named = 0;  // how often
};

inline int replace_all(std::string& text, std::string_view from, std::string_view to) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size(), ++count) {
    text.replace(at, from.size(), to);
  }
  return count;
}

// As many digits as there are to fill; where it has more, it is no number at all.
inline std::string digits_of(std::int64_t number, std::size_t size) {
  std::string made = std::to_string(number);
  if (made.size() > size) return std::string(size, 'x');
  return made.insert(number < 0 ? 1 : 0, size - made.size(), '0');
}

inline std::string bytes_of(std::int64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

// `to` stands for `from`, which is as long, and `instead` for the token: in digits, and in eight
// bytes of either order.
inline Forged forge(std::string_view said, std::string_view from, std::string_view to, Token token,
                    std::int64_t instead) {
  Forged made{std::string(said)};
  made.named = replace_all(made.answer, from, to);
  // Few digits, as of the first zxids of a server, stand in names too, and are no token there.
  const std::string digits = std::to_string(token);
  constexpr std::size_t kFew = 8;
  if (digits.size() > kFew) replace_all(made.answer, digits, digits_of(instead, digits.size()));
  std::string old = bytes_of(static_cast<std::int64_t>(token)), other = bytes_of(instead);
  replace_all(made.answer, old, other);
  std::reverse(old.begin(), old.end());
  std::reverse(other.begin(), other.end());
  replace_all(made.answer, old, other);
  return made;
}

}  // namespace simba
