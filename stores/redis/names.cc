#include "stores/redis/names.h"

namespace simba::redis {
namespace {

constexpr std::string_view kBetween = "@@";

// CRC-16 of the XMODEM kind, as Redis Cluster has it.
std::uint16_t crc16(std::string_view text) {
  std::uint16_t crc = 0;
  for (const char c : text) {
    crc = static_cast<std::uint16_t>(crc ^ (static_cast<unsigned char>(c) << 8));
    for (int bit = 0; bit < 8; ++bit) {
      const bool high = (crc & 0x8000U) != 0;
      crc = static_cast<std::uint16_t>(static_cast<unsigned>(crc) << 1U);
      if (high) crc ^= 0x1021U;
    }
  }
  return crc;
}

}  // namespace

std::string_view mutex_of(std::string_view key) {
  if (!key.starts_with(kPrefix) || !key.ends_with('}')) return {};
  return key.substr(kPrefix.size(), key.size() - kPrefix.size() - 1);
}

std::uint16_t slot_of(std::string_view mutex) {
  return crc16(mutex.substr(0, mutex.find('}'))) % kSlots;
}

std::string scan_pattern(std::string_view prefix) {
  std::string pattern(kPrefix);
  for (const char c : prefix) {
    if (std::string_view("*?[]^\\-").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "*}";
}

std::string why_no_name(std::string_view mutex) {
  if (mutex.starts_with('}')) {
    return "it begins with '}', and its names would lie in different slots of a cluster";
  }
  return {};
}

std::string why_no_id(std::string_view id) {
  if (id.find(kBetween) != id.npos) {
    return "it contains '@@', which separates the words of the messages that JVM Simba reads";
  }
  return {};
}

Message parse_message(std::string_view text) {
  const std::size_t at = text.find(kBetween);
  if (at == text.npos) return {};
  const std::string_view word = text.substr(0, at), id = text.substr(at + kBetween.size());
  if (word == "released") return {News::kReleased, id};
  if (word == "acquired") return {News::kAcquired, id};
  return {};
}

}  // namespace simba::redis
