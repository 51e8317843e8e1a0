#include "benchmarks/redis_server.h"

#include <sched.h>

#include <cstdlib>

namespace simba::bench {

std::unique_ptr<servers::RedisServer> start_redis(const char* row, Report& report) {
  try {
    auto server = std::make_unique<servers::RedisServer>();
    server->start();
    return server;
  } catch (const servers::Unavailable& reason) {
    Row skipped;
    skipped.name = row;
    skipped.verdict = Verdict::kSkipped;
    skipped.note = reason.what();
    report.add(skipped);
    return nullptr;
  }
}

// A server that has just been started without data is not what is measured.
std::string bench_url(const servers::RedisServer& server) {
  return server.url("restart-guard=off");
}

void bring_here(const servers::RedisServer& server) {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  sched_setaffinity(server.pid(), sizeof mine, &mine);
}

double server_cpu_seconds(const servers::RedisServer& server) {
  return std::atof(server.info("used_cpu_user").c_str()) +
         std::atof(server.info("used_cpu_sys").c_str());
}

}  // namespace simba::bench
