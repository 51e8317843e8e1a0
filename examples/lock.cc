// A critical section that runs once across all processes that use the same file.
#include <chrono>
#include <cstdio>
#include <mutex>

#include "simba/simba.h"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  // [lock]
  simba::Client client = simba::connect(argc > 1 ? argv[1] : "sqlite:");
  simba::SimbaLocker locker{client, "nightly-report"};
  if (std::unique_lock lock{locker, 30s}) {  // waits at most 30 s
    std::printf("writing the report, fencing token %llu\n",
                static_cast<unsigned long long>(locker.token()));
    for (int page = 0; page < 3 && !locker.lost().stop_requested(); ++page) {
      std::printf("page %d\n", page);
    }
  } else {
    std::puts("somebody else is at it");
  }
  // [lock]
  return 0;
}
