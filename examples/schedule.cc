// Work that runs every so often, on one replica.
#include <chrono>
#include <cstdio>
#include <thread>

#include "simba/simba.h"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  // [schedule]
  simba::Client client = simba::connect(argc > 1 ? argv[1] : "sqlite:");
  simba::Scheduler scheduler{
      client, "clean-up", simba::ScheduleConfig::rate(0ms, 100ms), [](const simba::Term& term) {
        if (term.lost().stop_requested()) return;
        std::printf("cleaning up, token %llu\n", static_cast<unsigned long long>(term.token()));
      }};
  scheduler.start();
  // [schedule]
  while (scheduler.runs() < 3) std::this_thread::sleep_for(10ms);
  scheduler.stop();  // waits for the running work
  return 0;
}
