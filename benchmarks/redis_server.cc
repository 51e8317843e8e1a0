#include "benchmarks/redis_server.h"

#include <cstdlib>

namespace simba::bench {

// A server that has just been started without data is not what is measured.
std::string bench_url(const servers::RedisServer& server) {
  return server.url("restart-guard=off");
}

double server_cpu_seconds(const servers::RedisServer& server) {
  return std::atof(server.info("used_cpu_user").c_str()) +
         std::atof(server.info("used_cpu_sys").c_str());
}

double server_script_micros(const servers::RedisServer& server) {
  const std::string all = server({"INFO", "commandstats"});
  const std::size_t line = all.find("cmdstat_evalsha:"), at = all.find("usec=", line);
  return line == all.npos || at == all.npos ? 0 : std::atof(all.c_str() + at + 5);
}

}  // namespace simba::bench
