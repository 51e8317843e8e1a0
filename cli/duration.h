#pragma once

#include <string>
#include <string_view>

#include "simba/time.h"

namespace simba::cli {

// `500ms`, `10s`, `1.5s`, `2m`, `1m30s`, `1h`, `1d`; `0` needs no unit. Throws UsageError that
// names `what`, the value and the units.
milliseconds parse_duration(std::string_view what, std::string_view text);

// For people: `350 ms`, `1.5 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 2 h`. Rounded down.
std::string print_duration(milliseconds span);
// What follows "at most": rounded up.
std::string print_bound(milliseconds span);

// As it may be typed: "1500ms", "2s". Rounded down to milliseconds.
std::string typed_duration(nanoseconds span);

}  // namespace simba::cli
