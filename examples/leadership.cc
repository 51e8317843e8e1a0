// One replica leads; the others take over when it dies.
#include <chrono>
#include <cstdio>
#include <thread>

#include "simba/simba.h"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  // [leadership]
  simba::Client client = simba::connect(argc > 1 ? argv[1] : "sqlite:");
  auto settlement = simba::make_contender(
      "order-settlement", {.on_acquired =
                               [](const simba::MutexState& state) {
                                 std::printf("leading, token %llu\n",
                                             static_cast<unsigned long long>(state.term.token()));
                               },
                           .on_released =
                               [](const simba::MutexState& state) {
                                 std::printf("not leading any more: %s\n",
                                             simba::to_string(state.loss.reason));
                               }});
  simba::MutexContendService service{client, settlement};
  service.start();  // contends until stop()
  // [leadership]
  while (!service.is_in_ttl()) std::this_thread::sleep_for(10ms);
  service.stop();
  return 0;
}
