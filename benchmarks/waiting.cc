// Ten thousand contenders that wait for one mutex in one process.
#include <malloc.h>

#include <atomic>
#include <utility>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/processes.h"
#include "benchmarks/settings.h"
#include "simba/async.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr int kContenders = 10'000;
constexpr double kMostBytes = 1'024;
// The blocks of its label and its wire id.
constexpr double kStrings = 32 + 48;
constexpr std::int64_t kRestNs = 500'000'000;
constexpr std::int64_t kPatienceNs = 15'000'000'000;

enum Figure { kBytes, kHeapBytes, kThreadsAtRest, kSettledMs, kAsked, kCpuShare };

}  // namespace

void idle_contenders(const Settings& settings, Report& report) {
  const Board board(settings.file("idle"));
  const Client client = connect(settings.url("idle.db"));
  SimbaLocker holder(client, "wanted");
  holder.lock();
  // In a process of its own: nothing else is in its memory.
  Process peer(
      {settings.program, "--peer", "idle", settings.url("idle.db"), settings.file("idle")});
  peer.wait();
  const auto figure = [&](Figure which) { return board->figures[which].load(); };
  Row row;
  row.name = "memory per waiting contender";
  row.unit = "B";
  row.ours = figure(kHeapBytes) - kStrings;
  row.target = "<= 1 KiB";
  row.verdict = *row.ours <= kMostBytes ? Verdict::kMet : Verdict::kMissed;
  row.note = std::to_string(kContenders) +
             " on one mutex, beyond its strings; resident, with them, " + fixed(figure(kBytes), 0) +
             " B; " + fixed(figure(kThreadsAtRest), 0) + " threads; " + fixed(figure(kAsked), 0) +
             " calls; at rest after " + fixed(figure(kSettledMs), 0) + " ms; then " +
             fixed(100 * figure(kCpuShare), 1) + " % of a core";
  report.add(row);
}

int idle_contenders_peer(char** arguments) {
  const Board board(arguments[1]);
  std::atomic<std::uint64_t> calls{0};
  ClientOptions options;
  options.on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kCalled) calls.fetch_add(1);
  };
  std::stop_source stop;
  const Client client = connect(arguments[0], options);
  std::vector<PendingAcquire> wishes;
  std::atomic<int> answered{0};
  const auto wish = [&] {
    AcquireOptions its_options;
    its_options.stop = stop.get_token();
    wishes.push_back(acquire_async(client, "wanted", std::move(its_options),
                                   [&](const Acquired&) { answered.fetch_add(1); }));
  };
  wishes.reserve(kContenders + 1);
  wish();  // threads, connections and tables are there from now on
  nap_ms(200);
  const double resident = resident_bytes();
  const auto heap = static_cast<double>(mallinfo2().uordblks);
  const std::int64_t begin = now_ns();
  for (int i = 0; i < kContenders; ++i) wish();
  // One who asks is answered for all who have not been sent yet: at rest nobody asks.
  std::uint64_t before = 0;
  std::int64_t settled = now_ns();
  wait_until([&] {
    const std::uint64_t so_far = calls;
    if (std::exchange(before, so_far) != so_far) settled = now_ns();
    nap_ms(20);
    return now_ns() - settled > kRestNs || now_ns() - begin > kPatienceNs;
  });
  board->figures[kAsked] = static_cast<double>(calls);
  const double cpu = cpu_seconds();
  nap_ms(2'000);
  board->figures[kCpuShare] = (cpu_seconds() - cpu) / 2;
  malloc_trim(0);  // what the start left behind is not theirs
  board->figures[kBytes] = (resident_bytes() - resident) / kContenders;
  board->figures[kHeapBytes] = (static_cast<double>(mallinfo2().uordblks) - heap) / kContenders;
  board->figures[kThreadsAtRest] = threads();
  board->figures[kSettledMs] = static_cast<double>(settled - begin) / 1e6;
  std::_Exit(0);  // ten thousand farewells are not measured here
}

}  // namespace simba::bench
