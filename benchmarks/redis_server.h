#pragma once

#include <memory>
#include <string>

#include "benchmarks/report.h"
#include "testing/servers/redis.h"

namespace simba::bench {

// None where this machine has none: then the row says so.
std::unique_ptr<servers::RedisServer> start_redis(const char* row, Report& report);
std::string bench_url(const servers::RedisServer& server);
// It runs where this thread may, from now on.
void bring_here(const servers::RedisServer& server);
double server_cpu_seconds(const servers::RedisServer& server);

}  // namespace simba::bench
