// A thousand mutexes held by one process: what their renewal costs.
#include <atomic>
#include <mutex>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/raw_sqlite.h"
#include "benchmarks/settings.h"
#include "simba/async.h"
#include "simba/connect.h"

namespace simba::bench {
namespace {

constexpr int kMutexes = 1000;
constexpr double kSeconds = 10;
constexpr double kMostCpu = 10;         // percent of one core
constexpr double kSmallestBatch = 100;  // once as many are due

std::string mutex_name(int i) { return "order-" + std::to_string(100'000 + i); }

struct Counts {
  std::atomic<std::uint64_t> acquired{0}, calls{0}, claims{0}, renewed{0}, failed{0}, lost{0};

  void note(const Event& event) {
    if (event.kind == Event::Kind::kCalled) {
      calls.fetch_add(1);
      claims.fetch_add(event.claims);
    }
    if (event.kind == Event::Kind::kRenewed) renewed.fetch_add(1);
    if (event.kind == Event::Kind::kRenewalFailed) failed.fetch_add(1);
    if (event.kind == Event::Kind::kRevoked) lost.fetch_add(1);
  }
  void reset() { calls = claims = renewed = failed = lost = 0; }
};

// CPU seconds for renewing all of them once.
double raw_cost(const Settings& settings) {
  RawSqlite db(settings.file("raw-renew.db"), RawSqlite::Synchronous::kNormal);
  std::vector<std::string> mutexes;
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < kMutexes; ++i) {
    mutexes.push_back(mutex_name(i));
    tokens.push_back(db.take(mutexes.back(), "owner"));
  }
  constexpr int kRounds = 50;
  const double before = cpu_seconds();
  for (int i = 0; i < kRounds; ++i) db.renew(mutexes, "owner", tokens);
  return (cpu_seconds() - before) / kRounds;
}

}  // namespace

void renewal(const Settings& settings, Report& report) {
  const double raw_round = raw_cost(settings);
  Counts counts;
  std::mutex guard;
  std::vector<HeldMutex> held;
  ClientOptions options;
  options.contend.ttl = milliseconds{2'000};
  options.on_event = [&](const Event& event) { counts.note(event); };
  const Client client = connect(settings.url("renew.db"), options);
  for (int i = 0; i < kMutexes; ++i) {
    acquire_async(client, mutex_name(i), {}, [&](Acquired acquired) {
      const std::lock_guard lock(guard);
      held.push_back(std::move(acquired.held));
      counts.acquired.fetch_add(1);
    });
  }
  wait_until([&] { return counts.acquired == kMutexes; });
  nap_ms(2'000);  // until the renewals have found their rhythm
  counts.reset();
  const double cpu = cpu_seconds();
  nap_ms(kSeconds * 1e3);
  const double used = cpu_seconds() - cpu;
  const auto calls = static_cast<double>(counts.calls),
             renewed = static_cast<double>(counts.renewed);
  const double rounds = renewed / kMutexes;

  Row row;
  row.name = "sqlite renewal of 1,000, CPU";
  row.unit = "ms";
  row.ours = used / rounds * 1e3;
  row.raw = raw_round * 1e3;
  row.ratio = raw_round * rounds / used;
  row.target = "<= 10 % core";
  row.verdict = 100 * used / kSeconds <= kMostCpu && counts.failed == 0 && counts.lost == 0
                    ? Verdict::kMet
                    : Verdict::kMissed;
  row.note = "CPU per round of 1,000; ttl 2 s: " + fixed(100 * used / kSeconds, 2) +
             " % of a core, " + std::to_string(threads()) + " threads, " +
             std::to_string(counts.failed) + " failed, " + std::to_string(counts.lost) + " lost";
  report.add(row);
  Row batch;
  batch.name = "sqlite renewal, claims per call";
  batch.unit = "";
  batch.ours = renewed / calls;
  batch.target = ">= 100";
  batch.verdict = *batch.ours >= kSmallestBatch ? Verdict::kMet : Verdict::kMissed;
  batch.note = fixed(calls / rounds, 1) + " transactions per round, " + fixed(rounds, 1) +
               " rounds in " + fixed(kSeconds, 0) + " s";
  report.add(batch);
  const std::lock_guard lock(guard);
  held.clear();
}

}  // namespace simba::bench
