#include "stores/redis/commands.h"

#include <hiredis/hiredis.h>

#include <array>
#include <charconv>
#include <new>

namespace simba::redis {
namespace {

constexpr std::size_t kUsualBytes = 384, kUsualWords = 20;

}  // namespace

Words::Words() = default;

Words::Words(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) text(word);
}

Words& Words::reserve(std::size_t words, std::size_t bytes) {
  ends_.reserve(words);
  memory_.reserve(bytes);
  return *this;
}

Words& Words::text(std::string_view begin, std::string_view end) {
  if (ends_.capacity() == 0) reserve(kUsualWords, kUsualBytes);
  memory_.append(begin).append(end);
  ends_.push_back(memory_.size());
  return *this;
}

Words& Words::number(std::int64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Commands& Commands::add(std::initializer_list<std::string_view> begin, const Words& middle,
                        std::initializer_list<std::string_view> end) {
  thread_local std::vector<const char*> texts;
  thread_local std::vector<std::size_t> lengths;
  texts.clear();
  lengths.clear();
  const auto put = [](std::string_view word) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  };
  for (const std::string_view word : begin) put(word);
  for (std::size_t i = 0; i < middle.size(); ++i) put(middle[i]);
  for (const std::string_view word : end) put(word);
  sds formatted = nullptr;
  const int length = redisFormatSdsCommandArgv(&formatted, static_cast<int>(texts.size()),
                                               texts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  bytes_.append(formatted, static_cast<std::size_t>(length));
  redisFreeSdsCommand(formatted);
  ++count_;
  return *this;
}

}  // namespace simba::redis
