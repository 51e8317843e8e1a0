// SQLite: the owner is killed, and somebody who waits takes over.
#include <csignal>
#include <thread>

#include "benchmarks/board.h"
#include "benchmarks/processes.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr int kRounds = 10;
constexpr double kMostBeyond = 50;  // ms after the end of the lease and the jitter

ContendOptions short_lease() {
  ContendOptions options;
  options.ttl = milliseconds{400};
  options.transition = milliseconds{200};
  options.jitter = {.from = milliseconds{0}, .to = milliseconds{1}};
  return options;
}

// When the lease ends, as the store says it, on our clock.
double lease_end(Client& client) {
  const Observation seen = client.observe("throne");
  const nanoseconds left = seen.owner.transition_at - seen.now;
  return static_cast<double>(now_ns() + left.count());
}

// Nanoseconds between the end of the dead owner's lease and the next term.
double take_over(const Settings& settings, int round) {
  const std::string name = "takeover-" + std::to_string(round);
  const Board board(settings.file(name));
  Process owner(
      {settings.program, "--peer", "takeover", settings.url(name + ".db"), settings.file(name)});
  wait_until([&] { return board->ready == 1; });
  Client client = connect(settings.url(name + ".db"));
  double acquired = 0;
  std::jthread waiter([&] {
    SimbaLocker locker(client, "throne", short_lease());
    locker.lock();
    acquired = static_cast<double>(now_ns());
  });
  nap_ms(300 + 37 * round);  // at another moment of the owner's rhythm each time
  owner.end(SIGKILL);
  const double end = lease_end(client);
  waiter.join();
  return acquired - end;
}

}  // namespace

void takeover(const Settings& settings, Report& report) {
  Samples beyond;
  for (int round = 0; round < kRounds; ++round) beyond.add(take_over(settings, round));
  Row row;
  row.name = "sqlite takeover after SIGKILL";
  row.unit = "ms";
  row.ours = beyond.median() / 1e6;
  row.ours_p99 = beyond.quantile(1) / 1e6;
  row.target = "<= 50 ms";
  row.verdict = *row.ours_p99 <= kMostBeyond ? Verdict::kMet : Verdict::kMissed;
  row.note = "after the end of the lease, with a jitter of 0; the worst of " +
             std::to_string(kRounds) + " rounds counts";
  report.add(row);
}

int takeover_peer(char** arguments) {
  const Client client = connect(arguments[0]);
  const Board board(arguments[1]);
  SimbaLocker locker(client, "throne", short_lease());
  locker.lock();
  board->ready = 1;
  wait_until([&] { return board->stop.load(); });
  return 0;
}

}  // namespace simba::bench
