// Two processes lock and unlock one mutex as fast as they can.
#include <algorithm>

#include "benchmarks/board.h"
#include "benchmarks/processes.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr double kTarget = 20;
constexpr double kSeconds = 3;

void race(const Settings& settings, Report& report, bool full) {
  const std::string name = full ? "fair-full" : "fair";
  const Board board(settings.file(name));
  {
    const auto racer = [&](const char* self) {
      return Process({settings.program, "--peer", "fairness", settings.url(name + ".db", full),
                      settings.file(name), self});
    };
    const Process one = racer("0"), two = racer("1");
    wait_until([&] { return board->ready == 2; });
    board->go = true;
    nap_ms(kSeconds * 1e3);
    board->stop = true;
  }
  const auto [less, more] = std::minmax({board->taken[0].load(), board->taken[1].load()});
  const auto all = static_cast<double>(less + more);
  Row row;
  row.name = full ? "sqlite share of the worse, FULL" : "sqlite share of the worse of two";
  row.unit = "%";
  row.ours = 100 * static_cast<double>(less) / all;
  row.target = ">= 20 %";
  row.verdict = *row.ours >= kTarget ? Verdict::kMet : Verdict::kMissed;
  row.note = std::to_string(less) + " of " + std::to_string(less + more) + " terms in " +
             fixed(kSeconds, 0) + " s";
  report.add(row);
}

}  // namespace

void fairness(const Settings& settings, Report& report) {
  race(settings, report, false);
  race(settings, report, true);
}

int fairness_peer(char** arguments) {
  const Client client = connect(arguments[0]);
  const Board board(arguments[1]);
  std::atomic<std::uint64_t>& taken = board->taken[static_cast<std::size_t>(*arguments[2] - '0')];
  SimbaLocker locker(client, "race");
  board->ready.fetch_add(1);
  wait_until([&] { return board->go.load(); });
  while (!board->stop) {
    locker.lock();
    taken.fetch_add(1, std::memory_order_relaxed);
    locker.unlock();
  }
  return 0;
}

}  // namespace simba::bench
