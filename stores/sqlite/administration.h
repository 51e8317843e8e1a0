#pragma once

#include <string>
#include <string_view>

#include "simba/export.h"
#include "simba/store_entry.h"

// What operators do with this store.
namespace simba::sqlite {

SIMBA_EXPORT Preparation prepare(std::string_view url, Prepare how);
SIMBA_EXPORT Inspection inspect(std::string_view url);
SIMBA_EXPORT std::string missing(std::string_view url);

}  // namespace simba::sqlite
