#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace simba::redis {

// The words of one command, copied into one piece of memory.
//
//   Words().text("GET").text(key)
class Words {
 public:
  Words();
  Words(std::initializer_list<std::string_view> words);

  // Room for so many words, of so many bytes together.
  Words& reserve(std::size_t words, std::size_t bytes);
  Words& text(std::string_view word) { return text(word, {}); }
  Words& text(std::string_view begin, std::string_view end);
  Words& number(std::int64_t value);

  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t index) const {
    const std::size_t from = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(memory_).substr(from, ends_[index] - from);
  }

 private:
  std::string memory_;
  std::vector<std::size_t> ends_;
};

// Commands that go out together, as bytes made by hiredis.
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
