#include "simba/store.h"

#include "core/utf8.h"
#include "simba/contender_id.h"

namespace simba::inline v0 {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Errc::kMisconfigured, why); }

// Names are shown as they are only when they can be shown.
std::string quoted(std::string_view name) {
  constexpr std::size_t kShown = 80;
  const std::string shown = core::printable(name, kShown);
  return "'" + shown + (name.size() > kShown ? "...'" : "'");
}

void check_text(const char* what, std::string_view name, std::size_t limit) {
  if (name.find_first_not_of(" \t\r\n\v\f") == name.npos) {
    refuse(std::string(what) + " is blank; give it a name");
  }
  if (name.size() > limit) {
    refuse(std::string(what) + ' ' + quoted(name) + " has " + std::to_string(name.size()) +
           " bytes; this store holds at most " + std::to_string(limit));
  }
  if (core::has_control_characters(name)) {
    refuse(std::string(what) + ' ' + quoted(name) + " contains a control character; remove it");
  }
  if (!core::is_valid_utf8(name)) {
    refuse(std::string(what) + ' ' + quoted(name) + " is not valid UTF-8");
  }
}

}  // namespace

void Store::check_mutex(std::string_view mutex) const {
  check_text("the mutex name", mutex, traits().max_mutex_length);
}

void Store::check_label(std::string_view label) const {
  const std::size_t suffix = make_wire_id(label, 0, 0).size() - label.size();
  check_text("the contender id", label, traits().max_wire_id_length - suffix);
}

}  // namespace simba::inline v0
