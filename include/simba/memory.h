#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "simba/export.h"
#include "simba/store.h"

namespace simba::inline v0 {

// Mutexes of this process alone: for tests, and for code that runs on one node today. Stores opened
// under the same name share their mutexes. `clock` says what time it is; by default CLOCK_BOOTTIME.
SIMBA_EXPORT std::shared_ptr<Store> open_memory(std::string_view name = {});
SIMBA_EXPORT std::shared_ptr<Store> make_memory(std::function<StoreTime()> clock = {});

}  // namespace simba::inline v0
