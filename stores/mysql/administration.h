#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simba/export.h"
#include "simba/store_entry.h"

// What operators do with this store.
namespace simba::mysql {

SIMBA_EXPORT Preparation prepare(std::string_view url, Prepare how);
SIMBA_EXPORT Inspection inspect(std::string_view url);
SIMBA_EXPORT std::vector<std::string> secrets(std::string_view url);

}  // namespace simba::mysql
