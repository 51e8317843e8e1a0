#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "core/utf8.h"

namespace simba::cli {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

bool has_colour() {
  const char* unwanted = secure_getenv("NO_COLOR");
  return (unwanted == nullptr || *unwanted == '\0') && is_screen(STDOUT_FILENO);
}

}  // namespace

void say(std::string_view line) { write_all(STDERR_FILENO, "simba: " + printable(line) + '\n'); }

bool print(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return true;
  if (errno == EPIPE) return false;
  static const bool said = [why = std::generic_category().message(errno)] {
    say("cannot write to standard output: " + why);
    return true;
  }();
  return !said;
}

bool is_screen(int fd) {
  const char* kind = secure_getenv("TERM");
  return isatty(fd) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

std::string printable(std::string_view text) { return core::printable(text, text.size()); }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view cut(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (!begins_character(text[end])) continue;
    if (width == 0) break;
    --width;
  }
  return text.substr(0, end);
}

std::string styled(Style style, std::string_view text) {
  static const bool colour = has_colour();
  if (!colour || style == Style::kPlain) return std::string(text);
  return (style == Style::kBold ? "\033[1m" : "\033[2m") + std::string(text) + "\033[0m";
}

}  // namespace simba::cli
