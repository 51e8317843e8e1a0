#include "core/names.h"

#include <string>

#include "core/utf8.h"
#include "simba/contender_id.h"
#include "simba/error.h"

namespace simba::core {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Errc::kMisconfigured, why); }

// Names are shown as they are only when they can be shown.
std::string quoted(std::string_view name) {
  constexpr std::size_t kShown = 80;
  const std::string shown = printable(name, kShown);
  return "'" + shown + (name.size() > kShown ? "...'" : "'");
}

}  // namespace

void check_name(const char* what, std::string_view name, std::size_t limit, const char* holder) {
  if (name.find_first_not_of(" \t\r\n\v\f") == name.npos) {
    refuse(std::string(what) + " is blank; give it a name");
  }
  if (name.size() > limit) {
    refuse(std::string(what) + ' ' + quoted(name) + " has " + std::to_string(name.size()) +
           " bytes; " + holder + " holds at most " + std::to_string(limit));
  }
  if (has_control_characters(name)) {
    refuse(std::string(what) + ' ' + quoted(name) + " contains a control character; remove it");
  }
  if (!is_valid_utf8(name)) {
    refuse(std::string(what) + ' ' + quoted(name) + " is not valid UTF-8");
  }
}

void check_label(std::string_view label, std::size_t limit, const char* holder) {
  const std::size_t suffix = make_wire_id(label, 0, 0).size() - label.size();
  check_name("the contender id", label, limit - suffix, holder);
}

}  // namespace simba::core
