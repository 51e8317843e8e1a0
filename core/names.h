#pragma once

#include <cstddef>
#include <string_view>

namespace simba::core {

// What holds in every store: not blank, at most `limit` bytes, valid UTF-8, no control characters.
// Throws Error (kMisconfigured) that names `what`; `holder` says whose limit it is: "this store".
void check_name(const char* what, std::string_view name, std::size_t limit, const char* holder);
// The same for a label whose wire id may have `limit` bytes.
void check_label(std::string_view label, std::size_t limit, const char* holder);

}  // namespace simba::core
