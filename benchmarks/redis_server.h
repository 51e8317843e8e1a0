#pragma once

#include <string>

#include "testing/servers/redis.h"

namespace simba::bench {

std::string bench_url(const servers::RedisServer& server);
double server_cpu_seconds(const servers::RedisServer& server);

}  // namespace simba::bench
