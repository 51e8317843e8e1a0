#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/connect.h"

namespace simba::client {

// Which scheme opens which store: a table made at configure time, plus what programs add by a call.
//
// Threads: any.

// The built-in stores; generated from the stores that are built.
std::vector<StoreEntry> built_in_stores();

// The entry for a URL. Throws Error (kMisconfigured) where nobody serves
// it, with those that are served.
StoreEntry entry_of(std::string_view url);

std::shared_ptr<Store> open(std::string_view url, const LogSink& log);

}  // namespace simba::client
