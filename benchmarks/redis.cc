// Redis: lock and unlock by one and by many, and renewals, against the least a lock can be.
#include <sched.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/raw_redis.h"
#include "benchmarks/redis_server.h"
#include "benchmarks/settings.h"
#include "simba/async.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr const char* kMutex = "nightly-report";
constexpr const char* kOwner = "0:12345@some-host~0123456789abc";  // as long as a wire id of ours
constexpr double kPairTarget = 0.80;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simba_bench: %s\n", what);
  std::exit(2);
}

struct RawPair {
  RawRedis db;
  void operator()() {
    expect(db.take(kOwner) && db.release(kOwner), "the raw loop did not get the mutex");
  }
};

Duel locker_against_raw(const servers::RedisServer& server, double seconds) {
  RawPair raw{{server.port(), "raw"}};
  RawPair raw_again{{server.port(), "raw_again"}};
  const Client client = connect(bench_url(server));
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      });
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

struct Crowd {
  int threads;
  double target;  // times one caller
};

void add_threads_row(const servers::RedisServer& server, const Crowd& crowd, double seconds,
                     Report& report) {
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

constexpr int kHeld = 100'000;

std::string name_of(int i) { return "order-" + std::to_string(1'000'000 + i); }

}  // namespace

void redis_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "redis lock+unlock";
  const auto server = start_redis(kName, report);
  if (!server) return;
  const Duel unpinned = locker_against_raw(*server, settings.seconds / 2);
  const Pinned pin;
  bring_here(*server);
  Row row = row_of(kName, locker_against_raw(*server, settings.seconds), &unpinned, kPairTarget);
  row.note = "raw is SET NX and a compare-and-delete, without token and messages";
  report.add(row);
}

void redis_threads(const Settings& settings, Report& report) {
  const auto server = start_redis("redis lock+unlock, threads", report);
  if (!server) return;
  for (const Crowd& crowd : {Crowd{16, 2.2}, Crowd{64, 2.8}}) {
    add_threads_row(*server, crowd, settings.seconds, report);
  }
}

void redis_renewal(const Settings&, Report& report) {
  Row row;
  row.name = "redis renewal of 100,000, CPU";
  const auto server = start_redis(row.name.c_str(), report);
  if (!server) return;
  std::atomic<int> acquired{0}, failed{0}, lost{0};
  std::atomic<std::uint64_t> calls{0}, renewed{0};
  ClientOptions options;
  options.on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kCalled) ++calls;
    if (event.kind == Event::Kind::kRenewed) ++renewed;
    if (event.kind == Event::Kind::kRenewalFailed) ++failed;
    if (event.kind == Event::Kind::kRevoked) ++lost;
  };
  std::mutex guard;
  std::vector<HeldMutex> held;
  const Client client = connect(bench_url(*server), options);
  constexpr int kAtOnce = 5'000;  // all at once would not be answered within a call's deadline
  for (int i = 0; i < kHeld; ++i) {
    wait_until([&] { return i - acquired < kAtOnce; });
    acquire_async(client, name_of(i), {}, [&](Acquired got) {
      if (!got.held) expect(false, got.error ? got.error->what() : "a mutex was not granted");
      const std::lock_guard lock(guard);
      held.push_back(std::move(got.held));
      ++acquired;
    });
  }
  wait_until([&] { return acquired == kHeld; });
  nap_ms(14'000);  // until the renewals have found their rhythm
  constexpr double kSeconds = 14;
  calls = renewed = 0;
  const double before = cpu_seconds(), server_before = server_cpu_seconds(*server);
  nap_ms(kSeconds * 1e3);
  const double used = 100 * (cpu_seconds() - before) / kSeconds;
  const double server_used = 100 * (server_cpu_seconds(*server) - server_before) / kSeconds;
  row.unit = "%";
  row.ours = used;
  row.target = "<= 5 % core";
  row.verdict = used <= 5 && failed == 0 && lost == 0 ? Verdict::kMet : Verdict::kMissed;
  row.note = std::to_string(renewed) + " renewals in " + fixed(kSeconds, 0) + " s, " +
             std::to_string(failed) + " failed, " + std::to_string(lost) + " lost, " +
             std::to_string(threads()) + " threads, " +
             fixed(static_cast<double>(renewed) / static_cast<double>(calls), 0) + " in a call";
  report.add(row);
  Row theirs;
  theirs.name = "redis renewal of 100,000, CPU of the server";
  theirs.unit = "%";
  theirs.ours = server_used;
  theirs.target = "<= 15 % core";
  theirs.verdict = server_used <= 15 ? Verdict::kMet : Verdict::kMissed;
  report.add(theirs);
  const std::lock_guard lock(guard);
  held.clear();
}

}  // namespace simba::bench
