#pragma once

#include <string>
#include <string_view>

#include "torture/target.h"

namespace simba::torture {

struct OwnStore {
  const char* name;
  Target (*start)();
  milliseconds ttl, transition;
};

// A store whose server we can start on loopback, and break as we like. None: there is no such one.
const OwnStore* own_store(std::string_view name);
std::string own_store_names();  // " sqlite mariadb"

}  // namespace simba::torture
