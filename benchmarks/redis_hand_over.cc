// Redis: a mutex goes from one process to another, and to one of many who wait.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/processes.h"
#include "benchmarks/raw_redis.h"
#include "benchmarks/redis_server.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr double kHandOverTarget = 0.8;  // 1.25 times the raw wake-up and claim
constexpr double kMoreWaiters = 1.5;

class RawBall : public Ball {
 public:
  RawBall(int port, const std::string& key, std::string owner)
      : db_(port, key), owner_(std::move(owner)) {
    db_.listen(owner_);
  }
  void lock() override {
    while (!db_.take_or_queue(owner_)) db_.wait();
  }
  void unlock() override { db_.release_and_wake(owner_); }

 private:
  RawRedis db_;
  const std::string owner_;
};

class OurBall : public Ball {
 public:
  OurBall(const Client& client, std::string mutex) : locker_(client, std::move(mutex)) {}
  void lock() override { locker_.lock(); }
  void unlock() override { locker_.unlock(); }

 private:
  SimbaLocker locker_;
};

Balls make_balls(const std::string& url, int port, const std::string& game,
                 const std::string& owner) {
  const Client client = connect(url);
  return {std::make_unique<RawBall>(port, game + "-raw", owner),
          std::make_unique<OurBall>(client, game + "-one"),
          std::make_unique<RawBall>(port, game + "-raw-again", owner),
          std::make_unique<OurBall>(client, game + "-two")};
}

Duel play(const Settings& settings, const servers::RedisServer& server, const char* game,
          double seconds) {
  const std::string url = bench_url(server), port = std::to_string(server.port());
  return play_catch(
      make_balls(url, server.port(), game, "first"), settings.file(game),
      {settings.program, "--peer", "redis-catch", url, port, settings.file(game), game}, seconds);
}

std::string in_us(const Samples& samples) {
  return fixed(samples.median() / 1e3, 0) + " us, p99 " + fixed(samples.quantile(0.99) / 1e3, 0);
}

// As with SQLite: two processes, whose threads wait for one mutex.
Samples hand_over_in_crowd(const Settings& settings, const std::string& url, int waiters,
                           double seconds) {
  const std::string file = settings.file("crowd-" + std::to_string(waiters));
  const Board board(file);
  std::vector<Process> processes;
  int next = 1;
  for (int process = 0; process < 2; ++process) {
    const int size = (waiters + 1 + process) / 2;
    processes.push_back(Process({settings.program, "--peer", "crowd", url, file,
                                 std::to_string(next), std::to_string(size)}));
    next += size;
  }
  wait_until([&] { return board->ready == 2; });
  board->go = true;
  nap_ms(1'000);
  const std::uint64_t begin = board->step;
  nap_ms(seconds * 1e3);
  const std::uint64_t end = std::min<std::uint64_t>(board->step, board->samples.size());
  board->stop = true;
  Samples samples;
  for (std::uint64_t i = begin; i < end; ++i) samples.add(static_cast<double>(board->samples[i]));
  return samples;
}

}  // namespace

void redis_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "redis hand-over, 1 waiter";
  const auto server = start_redis(kName, report);
  if (!server) return;
  const Duel unpinned = play(settings, *server, "catch", settings.seconds);
  const Pinned pin;
  bring_here(*server);
  const Duel pinned = play(settings, *server, "catch-pinned", settings.seconds);
  Row row = row_of(kName, pinned, &unpinned, kHandOverTarget);
  row.note = "not pinned: ours " + in_us(unpinned.ours) + "; raw " + in_us(unpinned.both_raw());
  report.add(row);
}

int redis_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], std::atoi(arguments[1]), arguments[3], "second"),
             arguments[2], arguments[4]);
  return 0;
}

void redis_hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const auto server = start_redis("redis hand-over to 1 of many", report);
  if (!server) return;
  const Pinned pin;
  bring_here(*server);
  Samples one;
  for (const int waiters : {1, 32, 200}) {
    const double before = std::atof(server->info("total_commands_processed").c_str());
    const Samples samples =
        hand_over_in_crowd(settings, bench_url(*server), waiters, settings.seconds);
    const double commands = std::atof(server->info("total_commands_processed").c_str()) - before;
    if (waiters == 1) one = samples;
    Row row;
    row.name = "redis hand-over to 1 of " + std::to_string(waiters);
    row.ours = samples.median() / 1e3;
    row.ours_p99 = samples.quantile(0.99) / 1e3;
    row.ratio = one.median() / samples.median();
    row.note = std::to_string(samples.size()) + " hand-overs, about " +
               fixed(commands / static_cast<double>(samples.size()), 1) +
               " commands each (start and end counted in); the ratio is to one waiter";
    if (waiters > 1) {
      row.target = "<= 1.5 times";
      row.verdict = *row.ratio >= 1 / kMoreWaiters ? Verdict::kMet : Verdict::kMissed;
    }
    report.add(row);
  }
}

}  // namespace simba::bench
