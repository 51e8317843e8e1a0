#include "stores/zookeeper/latch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

namespace simba::zookeeper {
namespace {

constexpr std::string_view kLatch = "latch-";

// FNV-1a and a finalizer that spreads its bits. Both ends of the uuid come from one each.
std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t value = seed;
  for (const char byte : text) {
    value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdU;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53U;
  return value ^ (value >> 33);
}

void append_hex(std::string& out, std::uint64_t value, int from, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int i = from; i < from + digits; ++i) out += kDigits[(value >> (60 - 4 * i)) & 0xf];
}

std::string uuid_of(std::string_view wire_id) {
  const std::uint64_t high = hash(wire_id, 0xcbf29ce484222325U);
  const std::uint64_t low = hash(wire_id, 0x9ae16a3b2f90404fU);
  std::string out;
  append_hex(out, high, 0, 8);
  append_hex(out += '-', high, 8, 4);
  append_hex(out += '-', high, 12, 4);
  append_hex(out += '-', low, 0, 4);
  append_hex(out += '-', low, 4, 12);
  return out;
}

// Those Java keeps in two 16-bit halves are refused by the server, as are those without a meaning.
bool is_refused(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character <= 0x9f) ||
         (character >= 0xd800 && character <= 0xf8ff) || character >= 0xfff0;
}

// Of valid UTF-8; the rest is refused elsewhere.
std::uint32_t decode(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  auto character = static_cast<std::uint32_t>(first & (0x3f >> more));
  for (int i = 0; i < more && at < text.size(); ++i) {
    character = (character << 6) | (static_cast<unsigned char>(text[at++]) & 0x3fU);
  }
  return character;
}

}  // namespace

std::string latch_prefix(std::string_view wire_id) { return "_c_" + uuid_of(wire_id) + '-'; }

std::string latch_stem(std::string_view wire_id) {
  return latch_prefix(wire_id) + std::string(kLatch);
}

std::optional<std::int64_t> latch_number(std::string_view name) {
  const std::size_t at = name.rfind(kLatch);
  if (at == name.npos) return std::nullopt;
  const std::string_view digits = name.substr(at + kLatch.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  constexpr std::size_t kDigits = 10;
  const bool all = error == std::errc{} && end == digits.data() + digits.size();
  if (!all || digits.size() < kDigits) return std::nullopt;
  return number;
}

std::vector<std::string> latch_order(std::vector<std::string> children) {
  std::vector<std::pair<std::int64_t, std::string*>> latches;
  latches.reserve(children.size());
  for (std::string& child : children) {
    if (const auto number = latch_number(child)) latches.emplace_back(*number, &child);
  }
  std::sort(latches.begin(), latches.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  std::vector<std::string> names;
  names.reserve(latches.size());
  for (const auto& latch : latches) names.push_back(std::move(*latch.second));
  return names;
}

std::vector<std::string> latches_of(std::string_view wire_id,
                                    const std::vector<std::string>& order) {
  const std::string prefix = latch_prefix(wire_id);
  std::vector<std::string> names;
  std::copy_if(order.begin(), order.end(), std::back_inserter(names),
               [&](const std::string& name) { return name.starts_with(prefix); });
  return names;
}

std::string why_no_node_name(std::string_view name) {
  if (name == "." || name == "..") return "'.' and '..' are no names in ZooKeeper";
  if (name.find('/') != name.npos) return "a '/' would nest nodes in ZooKeeper; use '.' or ':'";
  for (std::size_t at = 0; at < name.size();) {
    if (is_refused(decode(name, at))) {
      return "ZooKeeper takes no control characters, none above U+FFEF and no private ones";
    }
  }
  return {};
}

}  // namespace simba::zookeeper
