#pragma once

#include <string>

#include "testing/servers/redis.h"

namespace simba::bench {

std::string bench_url(const servers::RedisServer& server);
double server_cpu_seconds(const servers::RedisServer& server);
// Microseconds in scripts since it started, as it counts them itself.
double server_script_micros(const servers::RedisServer& server);

}  // namespace simba::bench
