#pragma once

#include <string>
#include <string_view>

namespace simba::core {

bool is_valid_utf8(std::string_view text);
// C0, DEL and C1.
bool has_control_characters(std::string_view text);
// The beginning of `text`, at most `limit` bytes, with `?` for what a terminal should not be shown.
std::string printable(std::string_view text, std::size_t limit);

}  // namespace simba::core
