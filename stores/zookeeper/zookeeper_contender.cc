// zookeeper_contender URL MUTEX ID TTL TRANSITION: contends until SIGTERM, and says what it hears,
// with the time by CLOCK_MONOTONIC. For tests that kill, stop and continue it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "simba/zookeeper.h"

namespace {

void say(const char* what, unsigned long long token = 0) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%s %lld %llu\n", what,
              static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec, token);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  simba::ClientOptions options;
  options.contend.ttl = simba::milliseconds{std::atoi(argv[4])};         // NOLINT(cert-err34-c)
  options.contend.transition = simba::milliseconds{std::atoi(argv[5])};  // NOLINT(cert-err34-c)
  const simba::Client client{simba::open_zookeeper(simba::zookeeper_options(argv[1])), options};
  simba::MutexContendService service{
      client, simba::make_contender(
                  argv[2],
                  {.on_acquired =
                       [](const simba::MutexState& state) { say("acquired", state.term.token()); },
                   .on_released = [](const simba::MutexState&) { say("released"); }},
                  argv[3])};
  service.start();
  say("started");
  int signal = 0;
  sigwait(&ends, &signal);
  service.stop();
  say("stopped");
}
