#pragma once

#include <cstdint>

// The binary format of what we send and get.
namespace simba::postgres {

// Types by their number in pg_type, the same in every server.
inline constexpr unsigned kText = 25, kBigint = 20, kTexts = 1009, kBigints = 1016;

inline void write_int64(char* out, std::int64_t value) {
  auto bits = static_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i, bits >>= 8) out[i] = static_cast<char>(bits & 0xff);
}

inline std::int64_t read_int64(const char* in) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = (bits << 8) | static_cast<unsigned char>(in[i]);
  return static_cast<std::int64_t>(bits);
}

}  // namespace simba::postgres
