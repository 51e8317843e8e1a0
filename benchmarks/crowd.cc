#include "benchmarks/crowd.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/processes.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr double kMoreWaiters = 1.5;  // times what one waiter needs

void join_crowd(const Client& client, Notes& notes, std::int64_t self) {
  SimbaLocker locker(client, "crowd");
  while (!notes.stop) {
    locker.lock();
    const std::int64_t now = now_ns();
    if (notes.holder.exchange(self) != 0 && notes.released_at != 0) {
      notes.add_sample(now - notes.released_at);
    }
    nap_ms(2 * kHoldMs);
    notes.released_at = now_ns();
    locker.unlock();
    // Who comes back at once would only measure itself.
    wait_until([&] { return notes.holder != self || notes.stop; });
  }
}

Samples hand_over_in_crowd(const Crowd& crowd, const Settings& settings, int waiters) {
  const std::string file = settings.file("crowd-" + std::to_string(waiters));
  const Board board(file);
  std::vector<Process> processes;
  int next = 1;
  for (int process = 0; process < 2; ++process) {
    const int size = (waiters + 1 + process) / 2;
    processes.push_back(Process({settings.program, "--peer", "crowd", crowd.url(waiters), file,
                                 std::to_string(next), std::to_string(size)}));
    next += size;
  }
  wait_until([&] { return board->ready == 2; });
  board->go = true;
  nap_ms(crowd.settle_ms);
  const std::uint64_t begin = board->step;
  nap_ms(settings.seconds * 1e3);
  const std::uint64_t end = std::min<std::uint64_t>(board->step, board->samples.size());
  board->stop = true;
  Samples samples;
  for (std::uint64_t i = begin; i < end; ++i) samples.add(static_cast<double>(board->samples[i]));
  return samples;
}

}  // namespace

void add_crowd_rows(const Crowd& crowd, const Settings& settings, Report& report) {
  Samples one;
  for (const int waiters : crowd.waiters) {
    const Samples samples = hand_over_in_crowd(crowd, settings, waiters);
    if (one.empty()) one = samples;
    Row row;
    row.name = crowd.store + " hand-over to 1 of " + std::to_string(waiters);
    row.ours = samples.median() / 1e3;
    row.ours_p99 = samples.quantile(0.99) / 1e3;
    row.ratio = one.median() / samples.median();
    row.note = std::to_string(samples.size()) + " hand-overs; the ratio is to one waiter";
    if (crowd.note) row.note += "; " + crowd.note(samples.size());
    if (waiters > 1) {
      row.target = "<= 1.5 times";
      row.verdict = *row.ratio >= 1 / kMoreWaiters ? Verdict::kMet : Verdict::kMissed;
    }
    report.add(row);
  }
}

int crowd_peer(char** arguments) {
  const Client client = connect(arguments[0]);
  const Board board(arguments[1]);
  const int first = std::atoi(arguments[2]), size = std::atoi(arguments[3]);
  board->ready.fetch_add(1);
  wait_until([&] { return board->go.load(); });
  std::vector<std::jthread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, self = first + i] { join_crowd(client, *board, self); });
  }
  return 0;
}

}  // namespace simba::bench
