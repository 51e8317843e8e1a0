#pragma once

#include <string>
#include <vector>

#include "torture/history.h"

// When nobody owned a mutex. Pure.
namespace simba::torture {

// Between the first term and the last of one mutex.
struct Gap {
  std::string mutex;
  LocalTime begin{};
  nanoseconds length{};
  std::size_t together =
      0;  // of how many mutexes nobody was owner in its midst, this one among them
};

// The longest of all; of length 0 where there is none.
Gap longest_gap(const std::vector<History>& histories);

}  // namespace simba::torture
