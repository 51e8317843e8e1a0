#pragma once

#include <string>
#include <string_view>

namespace simba::mysql {

// The one way in which bytes of a user get into the text of a statement: x'6a6f62'. It can hold
// nothing that the server could take for anything else.
void append_hex(std::string& sql, std::string_view bytes);  // 6a6f62
void append_literal(std::string& sql, std::string_view bytes);
std::string literal(std::string_view bytes);

}  // namespace simba::mysql
