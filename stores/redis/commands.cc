#include "stores/redis/commands.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace simba::redis {
namespace {

constexpr std::size_t kUsualBytes = 512, kUsualHead = 96;
constexpr std::size_t kLongestHead = 24;

// "*7\r\n" in front of so many words, "$7\r\n" in front of one of so many bytes. Not by hiredis,
// whose formatter was a quarter of all instructions of a renewal. Returns its end.
char* put_head(char* to, char kind, std::size_t number) {
  *to++ = kind;
  to = std::to_chars(to, to + kLongestHead - 3, number).ptr;
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

void put_count(std::string& bytes, std::size_t words) {
  std::array<char, kLongestHead> head{};
  bytes.append(head.data(), put_head(head.data(), '*', words));
}

// Room is made once, and not for each piece.
void put_word(std::string& bytes, std::string_view begin, std::string_view end = {}) {
  const std::size_t at = bytes.size(), length = begin.size() + end.size();
  bytes.resize(at + kLongestHead + length + 2);
  char* to = put_head(bytes.data() + at, '$', length);
  to = std::copy(begin.begin(), begin.end(), to);
  to = std::copy(end.begin(), end.end(), to);
  *to++ = '\r';
  *to++ = '\n';
  bytes.resize(static_cast<std::size_t>(to - bytes.data()));
}

}  // namespace

Words::Words() = default;

Words::Words(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) text(word);
}

Words& Words::reserve(std::size_t bytes) {
  bytes_.reserve(bytes);
  return *this;
}

Words& Words::text(std::string_view begin, std::string_view end) {
  if (count_ == 0) reserve(kUsualBytes);
  put_word(bytes_, begin, end);
  ++count_;
  return *this;
}

Words& Words::number(std::int64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Commands& Commands::add(std::initializer_list<std::string_view> begin, const Words& middle,
                        std::initializer_list<std::string_view> end) {
  bytes_.reserve(bytes_.size() + kUsualHead + middle.bytes().size());
  put_count(bytes_, begin.size() + middle.count() + end.size());
  for (const std::string_view word : begin) put_word(bytes_, word);
  bytes_.append(middle.bytes());
  for (const std::string_view word : end) put_word(bytes_, word);
  ++count_;
  return *this;
}

}  // namespace simba::redis
