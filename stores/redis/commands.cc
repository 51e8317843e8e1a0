#include "stores/redis/commands.h"

#include <array>
#include <charconv>

namespace simba::redis {
namespace {

constexpr std::size_t kUsualBytes = 512, kUsualHead = 96;

// "*7\r\n" in front of so many words, "$7\r\n" in front of one of so many bytes. Not by hiredis,
// whose formatter was a quarter of all instructions of a renewal.
void put_head(std::string& bytes, char kind, std::size_t number) {
  std::array<char, 24> head{kind};
  char* end = std::to_chars(head.data() + 1, head.data() + head.size() - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  bytes.append(head.data(), end);
}

void put_word(std::string& bytes, std::string_view begin, std::string_view end = {}) {
  put_head(bytes, '$', begin.size() + end.size());
  bytes.append(begin).append(end).append("\r\n");
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
  put_head(bytes_, '*', begin.size() + middle.count() + end.size());
  for (const std::string_view word : begin) put_word(bytes_, word);
  bytes_.append(middle.bytes());
  for (const std::string_view word : end) put_word(bytes_, word);
  ++count_;
  return *this;
}

}  // namespace simba::redis
