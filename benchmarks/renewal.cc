// SQLite: thousands of mutexes held by one process: what their renewal costs.
#include <vector>

#include "benchmarks/held.h"
#include "benchmarks/raw_sqlite.h"
#include "benchmarks/settings.h"

namespace simba::bench {
namespace {

constexpr int kMutexes = 1'000;
constexpr double kMostCpu = 10;  // percent of one core

// CPU seconds for renewing all of them once.
double raw_cost(const Settings& settings) {
  RawSqlite db(settings.file("raw-renew.db"), RawSqlite::Synchronous::kNormal);
  std::vector<std::string> mutexes;
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < kMutexes; ++i) {
    mutexes.push_back(order_name(i));
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
  const Renewals seen = watch_renewals({.url = settings.url("renew.db"),
                                        .count = kMutexes,
                                        .ttl = milliseconds{2'000},
                                        .settle_ms = 2'000,
                                        .seconds = 10});
  const double rounds = static_cast<double>(seen.renewed) / kMutexes;
  Row row = cpu_row("sqlite renewal of 1,000, CPU", seen.percent(), kMostCpu, seen.all_well());
  row.unit = "ms";
  row.ours = seen.cpu_seconds / rounds * 1e3;
  row.raw = raw_round * 1e3;
  row.ratio = raw_round * rounds / seen.cpu_seconds;
  row.note = "CPU per round of 1,000; ttl 2 s: " + fixed(seen.percent(), 2) + " % of a core; " +
             seen.text();
  report.add(row);
  Row batch = batch_row("sqlite renewal, claims per call", seen.per_call());
  batch.note = fixed(static_cast<double>(seen.calls) / rounds, 1) + " transactions per round, " +
               fixed(rounds, 1) + " rounds in " + fixed(seen.seconds, 0) + " s";
  report.add(batch);
}

void renewal_of_many(const Settings& settings, Report& report) {
  add_renewal_rows("sqlite", settings.url("renew-many.db"), report, 100'000);
}

}  // namespace simba::bench
