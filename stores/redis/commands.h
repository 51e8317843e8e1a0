#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace simba::redis {

// The words of one command, as a server reads them: "$LENGTH\r\nWORD\r\n" each.
//
//   Words().text("GET").text(key)
class Words {
 public:
  Words();
  Words(std::initializer_list<std::string_view> words);

  // Room for so many bytes.
  Words& reserve(std::size_t bytes);
  Words& text(std::string_view word) { return text(word, {}); }
  Words& text(std::string_view begin, std::string_view end);
  Words& number(std::int64_t value);

  std::string_view bytes() const { return bytes_; }
  std::size_t count() const { return count_; }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

// Commands that go out together.
class Commands {
 public:
  Commands& add(const Words& words) { return add({}, words); }
  // The words of `begin`, then those of `middle`, then those of `end`.
  Commands& add(std::initializer_list<std::string_view> begin, const Words& middle = Words(),
                std::initializer_list<std::string_view> end = {});

  std::string_view bytes() const { return bytes_; }
  std::size_t count() const { return count_; }
  void clear() {
    bytes_.clear();
    count_ = 0;
  }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

}  // namespace simba::redis
