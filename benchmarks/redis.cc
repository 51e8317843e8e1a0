// Redis: lock and unlock by one and by many, and renewals, against the least a lock can be.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/held.h"
#include "benchmarks/raw_redis.h"
#include "benchmarks/redis_server.h"
#include "benchmarks/server_rows.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

using Server = servers::RedisServer;
constexpr double kLeastTarget = 0.80;  // without token and messages, a lock is less

struct LeastPair {
  RawRedis db;
  void operator()() {
    expect(db.take(kOwner) && db.release(kOwner), "the raw loop did not get the mutex");
  }
};

struct ScriptPair {
  RawRedis db;
  void operator()() {
    expect(db.take_by_script(kOwner) && db.release_by_script(kOwner),
           "the scripts did not get the mutex");
  }
};

template <class Pair>
Duel locker_against_raw(const Server& server, double seconds) {
  Pair raw{{server.port(), "simba:{raw}"}};
  Pair raw_again{{server.port(), "simba:{raw_again}"}};
  return locker_against(
      bench_url(server), [&] { raw(); }, [&] { raw_again(); }, seconds);
}

// Pairs per second of so many threads, each with a mutex of its own, on one connection.
double pairs_per_second(const Client& client, int threads, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> pairs{0};
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      SimbaLocker locker(client, kMutex + std::to_string(i));
      while (!stop) {
        locker.lock();
        locker.unlock();
        pairs.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  nap_ms(200);
  const std::uint64_t before = pairs;
  const std::int64_t began = now_ns();
  nap_ms(seconds * 1e3);
  const double rate =
      static_cast<double>(pairs - before) * 1e9 / static_cast<double>(now_ns() - began);
  stop = true;
  return rate;
}

struct Callers {
  int threads;
  double target;  // times one caller
};

void add_threads_row(const Server& server, const Callers& crowd, double seconds, Report& report) {
  const Client client = connect(bench_url(server));
  // They take turns, so that a busy moment of the machine meets both.
  constexpr int kRounds = 5;
  Samples one, many, ratio;
  for (int round = 0; round < kRounds; ++round) {
    one.add(pairs_per_second(client, 1, seconds / kRounds));
    many.add(pairs_per_second(client, crowd.threads, seconds / kRounds));
  }
  Row row;
  row.name = "redis lock+unlock, " + std::to_string(crowd.threads) + " threads";
  row.unit = "/s";
  row.ours = many.median();
  row.raw = one.median();
  row.ratio = many.median() / one.median();
  row.target = ">= " + fixed(crowd.target, 1) + " times one";
  row.verdict = *row.ratio >= crowd.target ? Verdict::kMet : Verdict::kMissed;
  row.note = "raw is one caller of ours, on the same connection; server on the other core";
  report.add(row);
}

}  // namespace

void redis_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "redis lock+unlock";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  const auto add = [&](const std::string& name, Duel (*duel)(const Server&, double), double target,
                       const char* note) {
    const auto measure = [&](double seconds) { return duel(*server, seconds); };
    const Both both = measure_both(*server, measure, settings.seconds, settings.seconds / 2);
    Row row = row_of(name, both.pinned, &both.unpinned, target);
    row.note = note;
    report.add(row);
  };
  add(kName, locker_against_raw<LeastPair>, kLeastTarget,
      "raw is SET NX and a compare-and-delete, without token and messages");
  add(std::string(kName) + ", same scripts", locker_against_raw<ScriptPair>, kPairTarget,
      "raw runs the scripts of the store");
}

void redis_threads(const Settings& settings, Report& report) {
  const auto server = start_server<Server>("redis lock+unlock, threads", report);
  if (!server) return;
  for (const Callers& crowd : {Callers{16, 2.2}, Callers{64, 2.8}}) {
    add_threads_row(*server, crowd, settings.seconds, report);
  }
}

void redis_renewal(const Settings&, Report& report) {
  constexpr const char* kName = "redis renewal of 100,000, CPU";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  double scripts_before = 0, scripts = 0;
  const Renewals seen = watch_renewals(
      {.url = bench_url(*server), .count = 100'000, .settle_ms = 14'000, .server_cpu = [&] {
         scripts_before = std::exchange(scripts, server_script_micros(*server));
         return server_cpu_seconds(*server);
       }});
  Row row = cpu_row(kName, seen.percent(), 5, seen.all_well());
  row.note = seen.text() + ", " + fixed(seen.per_call(), 0) + " in a call";
  report.add(row);
  const double theirs = 100 * seen.server_seconds / seen.seconds;
  report.add(cpu_row(std::string(kName) + " of the server", theirs, 15, true));
  Row each;
  each.name = "redis renewal, in the server's scripts";
  each.ours = (scripts - scripts_before) / static_cast<double>(seen.renewed);
  each.note = "for each of sixteen in a script; the store sizes its pipelines by 4";
  report.add(each);
}

}  // namespace simba::bench
