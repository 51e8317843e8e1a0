#pragma once

#include <string>
#include <string_view>

namespace simba::cli {

// "simba: ..." on standard error, in one piece.
void say(std::string_view line);

// To standard output. False when it could not be written, which is said the first time.
bool print(std::string_view text);

// Names come from the store: whatever could play tricks with a terminal is replaced.
std::string printable(std::string_view text);

// What a terminal shows in one column per character, as far as UTF-8 tells.
std::size_t width_of(std::string_view text);

enum class Style { kPlain, kBold, kDim };
// Styled on a terminal, unless NO_COLOR is set.
std::string styled(Style style, std::string_view text);

}  // namespace simba::cli
