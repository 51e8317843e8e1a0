#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace simba::kit {

// As much of a server's words as an error or a line in a log repeats, never half a character.
inline std::string shortened(std::string_view said) {
  constexpr std::size_t kMost = 500;
  if (said.size() <= kMost) return std::string(said);
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; };
  std::size_t end = kMost;
  while (end > 0 && goes_on(said[end])) --end;
  return std::string(said.substr(0, end)) + "...";
}

}  // namespace simba::kit
