#pragma once

#include <string>
#include <string_view>

namespace simba::cli {

// "simba: ..." on standard error, in one piece; what could play tricks with a terminal is replaced.
void say(std::string_view line);

// To standard output. False when it could not be written, which is said the first time; not that
// its reader, as head, wanted no more.
bool print(std::string_view text);

// Names come from the store: whatever could play tricks with a terminal is replaced.
std::string printable(std::string_view text);

// What a terminal shows in one column per character, as far as UTF-8 tells.
std::size_t width_of(std::string_view text);

// Its first characters, as many as have room.
std::string_view cut(std::string_view text, std::size_t width);

// Where a line can be painted over and styled.
bool is_screen(int fd);

enum class Style { kPlain, kBold, kDim };
// Styled on a screen, unless NO_COLOR is set.
std::string styled(Style style, std::string_view text);

}  // namespace simba::cli
