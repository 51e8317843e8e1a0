#pragma once

#include <string_view>

#include "core/utf8.h"
#include "fuzz/target.h"
#include "simba/error.h"

namespace simba::fuzz {

// What holds for every error, whatever a server says in it.
inline void check(const Error& error, std::string_view start) {
  constexpr std::size_t kMost = 2'000;
  const std::string_view what = error.what();
  require(what.starts_with(start), "an error says where");
  require(core::is_valid_utf8(what) && !core::has_control_characters(what),
          "an error is one line that a terminal can be shown");
  require(what.size() <= kMost, "an error does not repeat all that a server says");
}

}  // namespace simba::fuzz
