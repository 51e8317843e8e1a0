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
using OpenStore = StoreFactory;

// The built-in stores; generated from the stores that are built.
std::vector<std::pair<std::string, OpenStore>> built_in_stores();

std::shared_ptr<Store> open(std::string_view url, const LogSink& log);

}  // namespace simba::client
