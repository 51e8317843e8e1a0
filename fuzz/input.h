#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace simba::fuzz {

// Values out of the bytes of a fuzzer. Texts are taken from the front and numbers from the back, as
// libFuzzer's FuzzedDataProvider does: so the corpora mean the same with any compiler. When there
// are no more bytes, texts are empty and numbers the smallest they may be.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : bytes_(reinterpret_cast<const char*>(data), size) {}

  std::size_t left() const { return bytes_.size(); }

  // Both included.
  template <class Number>
  Number in_range(Number least, Number most) {
    static_assert(std::is_integral_v<Number> && sizeof(Number) <= sizeof(std::uint64_t));
    const std::uint64_t range =
        static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    std::uint64_t drawn = 0;
    for (std::size_t bits = 0;
         bits < sizeof(Number) * CHAR_BIT && (range >> bits) > 0 && !bytes_.empty();
         bits += CHAR_BIT) {
      drawn = (drawn << CHAR_BIT) | static_cast<std::uint8_t>(bytes_.back());
      bytes_.remove_suffix(1);
    }
    if (range != std::numeric_limits<std::uint64_t>::max()) drawn %= range + 1;
    return static_cast<Number>(static_cast<std::uint64_t>(least) + drawn);
  }
  template <class Number>
  Number number() {
    return in_range(std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max());
  }
  bool flip() { return (number<std::uint8_t>() & 1U) != 0; }
  // Any but infinity and what is no number.
  double real() {
    constexpr double kHalf = std::numeric_limits<double>::max();  // of all that there are
    const double from = flip() ? 0.0 : -kHalf;
    return from + kHalf * (static_cast<double>(number<std::uint64_t>()) /
                           static_cast<double>(std::numeric_limits<std::uint64_t>::max()));
  }

  // Ends at a backslash that no other follows: so a fuzzer decides how long it is.
  std::string text(std::size_t most) {
    std::string drawn;
    while (drawn.size() < most && !bytes_.empty()) {
      char next = pop_front();
      if (next == '\\' && !bytes_.empty()) {
        next = pop_front();
        if (next != '\\') break;
      }
      drawn += next;
    }
    return drawn;
  }
  std::string bytes(std::size_t count) {
    const std::string drawn(bytes_.substr(0, count));
    bytes_.remove_prefix(drawn.size());
    return drawn;
  }
  std::string rest() { return bytes(bytes_.size()); }

 private:
  char pop_front() {
    const char first = bytes_.front();
    bytes_.remove_prefix(1);
    return first;
  }

  std::string_view bytes_;
};

}  // namespace simba::fuzz
