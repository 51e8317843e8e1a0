#pragma once

#include <chrono>

#include "simba/time.h"

namespace simba::torture {

// For tests: so long after the beginning of time.
inline LocalTime at(int ms) { return LocalTime{std::chrono::milliseconds{ms}}; }

}  // namespace simba::torture
