#pragma once

#include <span>
#include <string>

#include "torture/target.h"

namespace simba::torture {

struct OwnStore {
  const char* name;
  Target (*start)();
  milliseconds ttl, transition;
};

// The stores whose servers we can start on loopback, and break as we like.
std::span<const OwnStore> own_stores();

}  // namespace simba::torture
