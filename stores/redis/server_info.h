#pragma once

#include <cstdint>
#include <string_view>

#include "stores/redis/reply.h"

namespace simba::redis {

// What a server's INFO and TIME say that matters for locks; numbers that make no sense are 0.
//
// The views are into the text that was read.
struct ServerInfo {
  std::string_view version_text;
  std::int64_t version = 0;  // "7.0.15" is 70015; 0: INFO is not allowed
  bool persists = false;     // it writes down what it grants, as it happens
  std::int64_t started = 0;  // at the latest, by its own clock, in ms
  std::string_view eviction_policy;
  bool evicts = false;
};
ServerInfo read_info(std::string_view info, const Reply& time);

// When a server has started at the latest, in ms by its clock: an uptime in whole seconds is the
// difference of two times whose fractions were cut off.
std::int64_t latest_start(std::int64_t now, std::int64_t uptime);

}  // namespace simba::redis
