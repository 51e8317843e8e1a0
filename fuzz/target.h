#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/input.h"

// What the fuzzers share. Each is one file with one LLVMFuzzerTestOneInput(); what must always hold
// is said with require(), and any exception but the documented one ends the run as a crash does.
namespace simba::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "\nbroken: %s\n", what);
  std::abort();
}

// Calls what may refuse its input. False: it did, with the documented error and a reason in it.
template <class Documented, class Call>
bool accepts(Call call) {
  try {
    call();
    return true;
  } catch (const Documented& error) {
    require(!std::string_view(error.what()).empty(), "an error says why");
    return false;
  }
}

}  // namespace simba::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
