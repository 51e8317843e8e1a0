// ZooKeeper: lock and unlock, and a hand-over, against the raw driver; what thousands of idle
// waiters cost.
#include <malloc.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/processes.h"
#include "benchmarks/raw_zookeeper.h"
#include "benchmarks/settings.h"
#include "simba/async.h"
#include "simba/connect.h"
#include "simba/locker.h"
#include "testing/servers/zookeeper.h"

namespace simba::bench {
namespace {

constexpr const char* kMutex = "nightly-report";
constexpr const char* kOwner = "0:12345@some-host~0123456789abc";  // as long as a wire id of ours
constexpr double kPairTarget = 0.92;
constexpr double kHandOverTarget = 0.8;  // 1.25 times the raw wake-up and list

constexpr double kLongHoldMs = 5;  // to queue takes three requests, one of them flushed
constexpr int kWaiters = 10'000;
constexpr double kSeconds = 15;  // of watching them

using Requests = RawZookeeper::Requests;

std::string name_of(int i) { return "order-" + std::to_string(100'000 + i); }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simba_bench: %s\n", what);
  std::exit(2);
}

// A server that flushes what it commits; none where this machine has none.
std::unique_ptr<servers::ZooKeeperServer> start_server(const char* row, Report& report) {
  try {
    servers::ZooKeeperSettings settings;
    settings.syncs_disk = true;
    auto server = std::make_unique<servers::ZooKeeperServer>(settings);
    server->start();
    return server;
  } catch (const servers::Unavailable& reason) {
    Row skipped;
    skipped.name = row;
    skipped.verdict = Verdict::kSkipped;
    skipped.note = reason.what();
    report.add(skipped);
    return nullptr;
  }
}

// All threads of the server, where this thread may run.
void bring_here(const servers::ZooKeeperServer& server) {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  const std::string tasks = "/proc/" + std::to_string(server.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof mine, &mine);
  }
}

std::string url_of(const std::string& servers) { return "zookeeper://" + servers; }

struct RawPair {
  RawZookeeper queue;
  void operator()() {
    expect(queue.join(kOwner), "the raw loop did not get the mutex");
    queue.leave();
  }
};

Duel locker_against_raw(const servers::ZooKeeperServer& server, Requests requests, double seconds) {
  RawPair raw{{server.address(), "/raw", requests}};
  RawPair raw_again{{server.address(), "/raw-again", requests}};
  const Client client = connect(url_of(server.address()));
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      });
}

class RawBall : public Ball {
 public:
  RawBall(const std::string& servers, const std::string& path, std::string owner)
      : queue_(servers, path, Requests::kOneByOne), owner_(std::move(owner)) {}
  void lock() override {
    if (!queue_.join(owner_)) queue_.wait();
  }
  void unlock() override { queue_.leave(); }

 private:
  RawZookeeper queue_;
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

Balls make_balls(const std::string& servers, const std::string& game, const std::string& owner) {
  const Client client = connect(url_of(servers));
  return {std::make_unique<RawBall>(servers, "/raw" + game, owner),
          std::make_unique<OurBall>(client, "one" + game),
          std::make_unique<RawBall>(servers, "/raw-again" + game, owner),
          std::make_unique<OurBall>(client, "two" + game)};
}

Duel play(const Settings& settings, const servers::ZooKeeperServer& server, const std::string& game,
          double seconds) {
  return play_catch(make_balls(server.address(), game, "first"), settings.file("board" + game),
                    {settings.program, "--peer", "zookeeper-catch", server.address(), game,
                     settings.file("board" + game)},
                    seconds, kLongHoldMs);
}

std::string in_us(const Samples& samples) {
  return fixed(samples.median() / 1e3, 0) + " us, p99 " + fixed(samples.quantile(0.99) / 1e3, 0);
}

}  // namespace

void zookeeper_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper lock+unlock";
  const auto server = start_server(kName, report);
  if (!server) return;
  const Duel unpinned = locker_against_raw(*server, Requests::kTogether, settings.seconds / 2);
  const Pinned pin;
  bring_here(*server);
  const Duel pinned = locker_against_raw(*server, Requests::kTogether, settings.seconds);
  const Duel slow = locker_against_raw(*server, Requests::kOneByOne, settings.seconds / 2);
  Row row = row_of(kName, pinned, &unpinned, kPairTarget);
  row.note = "against the driver's blocking calls, one by one: " + fixed(slow.ratio(), 3) +
             " (raw " + fixed(slow.both_raw().median() / 1e3, 0) + " us, A/A " +
             fixed(slow.a_to_a(), 3) + ")";
  report.add(row);
}

void zookeeper_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper hand-over, 1 waiter";
  const auto server = start_server(kName, report);
  if (!server) return;
  const Duel unpinned = play(settings, *server, "", settings.seconds);
  const Pinned pin;
  bring_here(*server);
  const Duel pinned = play(settings, *server, "-pinned", settings.seconds);
  Row row = row_of(kName, pinned, &unpinned, kHandOverTarget);
  row.note = "not pinned: ours " + in_us(unpinned.ours) + "; raw " + in_us(unpinned.both_raw());
  report.add(row);
}

int zookeeper_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], arguments[1], "second"), arguments[2], arguments[3],
             kLongHoldMs);
  return 0;
}

// Ten thousand who wait, each for a mutex of its own that another process holds: this one.
void zookeeper_idle(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper idle waiter, memory";
  const auto server = start_server(kName, report);
  if (!server) return;
  std::mutex guard;
  std::vector<HeldMutex> held;
  std::atomic<int> acquired{0};
  const Client holder = connect(url_of(server->address()));
  for (int i = 0; i < kWaiters; ++i) {
    acquire_async(holder, name_of(i), {}, [&](Acquired got) {
      const std::lock_guard lock(guard);
      held.push_back(std::move(got.held));
      ++acquired;
    });
  }
  wait_until([&] { return acquired == kWaiters; });
  const Board board(settings.file("board"));
  const Process waiters(
      {settings.program, "--peer", "zookeeper-idle", server->address(), settings.file("board")});
  wait_until([&] { return board->ready == 1; });
  const auto received = [&] { return server->monitor("zk_packets_received"); };
  const std::int64_t before = received();
  nap_ms(kSeconds * 1e3);
  const double requests = static_cast<double>(received() - before) / kSeconds;
  wait_until([&] { return board->ready == 2; });
  Row memory;
  memory.name = kName;
  memory.unit = "B";
  memory.ours = board->figures[0].load();
  memory.note = std::to_string(kWaiters) + " waiters, " +
                std::to_string(static_cast<int>(board->figures[1])) + " threads";
  report.add(memory);
  Row rate;
  rate.name = "zookeeper idle waiters, requests";
  rate.unit = "/s";
  rate.ours = requests;
  rate.note =
      "together, of their process and the owner's; the waiters use " + fixed(board->figures[2], 1) +
      " % of a core; watches on the server: " + std::to_string(server->monitor("zk_watch_count"));
  report.add(rate);
  board->stop = true;
  const std::lock_guard lock(guard);
  held.clear();
}

int zookeeper_idle_peer(char** arguments) {
  const Board board(arguments[1]);
  const Client client = connect(url_of(arguments[0]));
  const double before = resident_bytes();
  std::vector<PendingAcquire> waiting;
  for (int i = 0; i < kWaiters; ++i) {
    waiting.push_back(acquire_async(client, name_of(i), {}, [](const Acquired&) {}));
  }
  nap_ms(20'000);  // until the polls have found their rhythm
  malloc_trim(0);  // what the start needed
  board->figures[0] = (resident_bytes() - before) / kWaiters;
  board->figures[1] = threads();
  board->ready = 1;
  const double cpu = cpu_seconds();
  nap_ms(kSeconds * 1e3);
  board->figures[2] = 100 * (cpu_seconds() - cpu) / kSeconds;
  board->ready = 2;
  wait_until([&] { return board->stop.load(); });
  std::_Exit(0);  // ten thousand releases are not the point
}

}  // namespace simba::bench
