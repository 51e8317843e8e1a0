#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace simba::postgres {

// The arguments of a statement in the binary format: bound, never pasted, and never copied but for
// arrays. Text outlives the call.
//
//   Parameters().text(mutex).number(token)
//
// Threads: one at a time.
class Parameters {
 public:
  static constexpr std::size_t kMost = 6;

  Parameters() = default;
  Parameters(const Parameters&) = delete;  // it points into itself
  Parameters& operator=(const Parameters&) = delete;

  Parameters& text(std::string_view value);
  Parameters& number(std::int64_t value);
  Parameters& texts(std::span<const std::string_view> values);
  Parameters& numbers(std::span<const std::int64_t> values);

  int count() const { return static_cast<int>(count_); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const;

 private:
  void add(const char* value, std::size_t length);

  std::size_t count_ = 0;
  std::array<const char*, kMost> values_{};
  std::array<int, kMost> lengths_{};
  std::array<std::array<char, 8>, kMost> numbers_{};
  std::deque<std::string> arrays_;
};

}  // namespace simba::postgres
