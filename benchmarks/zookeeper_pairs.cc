// ZooKeeper: lock and unlock, and a hand-over, against the raw driver; what thousands of idle
// waiters cost.
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/crowd.h"
#include "benchmarks/held.h"
#include "benchmarks/processes.h"
#include "benchmarks/raw_zookeeper.h"
#include "benchmarks/server_rows.h"
#include "simba/async.h"
#include "simba/connect.h"
#include "testing/servers/zookeeper.h"

namespace simba::bench {
namespace {

using Server = servers::ZooKeeperServer;

constexpr double kLongHoldMs = 5;  // to queue takes three requests, one of them flushed
constexpr int kWaiters = 10'000;
constexpr double kSeconds = 15;  // of watching them

using Requests = RawZookeeper::Requests;

enum Figure { kBytes, kHeapBytes, kThreads, kCpu, kDriverBytes };

constexpr double kMostBytes = 1'024;
// The blocks of its wire id, of its node's name and of the path that it watches.
constexpr double kStrings = 48 + 64 + 96;

double heap() { return static_cast<double>(mallinfo2().uordblks); }

// What the driver alone keeps of a watched node.
double driver_bytes(const std::string& servers) {
  RawZookeeper raw(servers, "/raw-watches", Requests::kTogether);
  std::vector<std::string> names;
  for (int i = 0; i < kWaiters; ++i) {
    names.push_back("_c_01234567-89ab-cdef-0123-456789abcdef-latch-" +
                    std::to_string(1'000'000'000 + i));
  }
  const double before = heap();
  raw.watch(names);
  return (heap() - before) / kWaiters;
}

// One that flushes what it commits.
std::unique_ptr<Server> start(const char* row, Report& report) {
  servers::ZooKeeperSettings settings;
  settings.syncs_disk = true;
  return start_server<Server>(row, report, settings);
}

std::string url_of(const std::string& servers) { return "zookeeper://" + servers; }

struct RawQueue {
  RawZookeeper queue;
  void operator()() {
    expect(queue.join(kOwner), "the raw loop did not get the mutex");
    queue.leave();
  }
};

Duel locker_against_raw(const Server& server, Requests requests, double seconds) {
  RawQueue raw{{server.address(), "/raw", requests}};
  RawQueue raw_again{{server.address(), "/raw-again", requests}};
  return locker_against(
      url_of(server.address()), [&] { raw(); }, [&] { raw_again(); }, seconds);
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

Balls make_balls(const std::string& servers, const std::string& game, const std::string& owner) {
  const Client client = connect(url_of(servers));
  return {std::make_unique<RawBall>(servers, "/raw-" + game, owner),
          our_ball(client, "one-" + game),
          std::make_unique<RawBall>(servers, "/raw-again-" + game, owner),
          our_ball(client, "two-" + game)};
}

}  // namespace

void zookeeper_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper lock+unlock";
  const auto server = start(kName, report);
  if (!server) return;
  const auto together = [&](double seconds) {
    return locker_against_raw(*server, Requests::kTogether, seconds);
  };
  const Both both = measure_both(*server, together, settings.seconds, settings.seconds / 2);
  const Pinned pin;
  const Duel slow = locker_against_raw(*server, Requests::kOneByOne, settings.seconds / 2);
  Row row = row_of(kName, both.pinned, &both.unpinned, kPairTarget);
  row.note = "against the driver's blocking calls, one by one: " + fixed(slow.ratio(), 3) +
             " (raw " + fixed(slow.both_raw().median() / 1e3, 0) + " us, A/A " +
             fixed(slow.a_to_a(), 3) + ")";
  report.add(row);
}

void zookeeper_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper hand-over, 1 waiter";
  const auto server = start(kName, report);
  if (!server) return;
  add_hand_over_row(*server, report, kName, [&](const std::string& game) {
    const std::string address = server->address(), board = settings.file(game);
    return play_catch(make_balls(address, game, "first"), board,
                      {settings.program, "--peer", "zookeeper-catch", address, game, board},
                      settings.seconds, kLongHoldMs);
  });
}

int zookeeper_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], arguments[1], "second"), arguments[2], arguments[3],
             kLongHoldMs);
  return 0;
}

void zookeeper_hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const auto server = start("zookeeper hand-over to 1 of many", report);
  if (!server) return;
  const Pinned pin;
  bring_here(*server);
  const auto sent = [&] { return server->monitor("zk_packets_sent"); };
  std::int64_t before = sent();
  Crowd crowd{
      .store = "zookeeper", .waiters = {1, 32, 200}, .url = {}, .settle_ms = 2'000, .note = {}};
  crowd.url = [&](int) { return url_of(server->address()); };
  crowd.note = [&](std::size_t hand_overs) {
    const auto packets = static_cast<double>(sent() - std::exchange(before, sent()));
    return "about " + fixed(packets / static_cast<double>(hand_overs), 1) +
           " packets of the server each (start and end counted in)";
  };
  add_crowd_rows(crowd, settings, report);
}

// Ten thousand who wait, each for a mutex of its own that another process holds: this one.
void zookeeper_idle(const Settings& settings, Report& report) {
  constexpr const char* kName = "zookeeper idle waiter, memory";
  const auto server = start(kName, report);
  if (!server) return;
  const Client holder = connect(url_of(server->address()));
  const Held held(holder, kWaiters);
  const Board board(settings.file("board"));
  const Process waiters(
      {settings.program, "--peer", "zookeeper-idle", server->address(), settings.file("board")});
  wait_until([&] { return board->ready == 1; });
  const auto received = [&] { return server->monitor("zk_packets_received"); };
  const std::int64_t before = received();
  nap_ms(kSeconds * 1e3);
  const double requests = static_cast<double>(received() - before) / kSeconds;
  wait_until([&] { return board->ready == 2; });
  const auto figure = [&](Figure which) { return board->figures[which].load(); };
  Row memory;
  memory.name = kName;
  memory.unit = "B";
  memory.ours = figure(kHeapBytes) - figure(kDriverBytes) - kStrings;
  memory.target = "<= 1 KiB";
  memory.verdict = *memory.ours <= kMostBytes ? Verdict::kMet : Verdict::kMissed;
  memory.note = std::to_string(kWaiters) + " waiters, each for a mutex of its own, beyond their " +
                fixed(kStrings, 0) + " B of strings and the driver's watch, " +
                fixed(figure(kDriverBytes), 0) + " B; resident, with both, " +
                fixed(figure(kBytes), 0) + " B; " + fixed(figure(kThreads), 0) + " threads";
  report.add(memory);
  Row rate;
  rate.name = "zookeeper idle waiters, requests";
  rate.unit = "/s";
  rate.ours = requests;
  rate.note =
      "together, of their process and the owner's; the waiters use " + fixed(figure(kCpu), 1) +
      " % of a core; watches on the server: " + std::to_string(server->monitor("zk_watch_count"));
  report.add(rate);
  board->stop = true;
}

int zookeeper_idle_peer(char** arguments) {
  const Board board(arguments[1]);
  const Client client = connect(url_of(arguments[0]));
  std::vector<PendingAcquire> waiting;
  waiting.reserve(kWaiters);
  const double before = resident_bytes(), empty = heap();
  for (int i = 0; i < kWaiters; ++i) {
    waiting.push_back(acquire_async(client, order_name(i), {}, [](const Acquired&) {}));
  }
  nap_ms(20'000);  // until the polls have found their rhythm
  malloc_trim(0);  // what the start needed
  board->figures[kBytes] = (resident_bytes() - before) / kWaiters;
  board->figures[kHeapBytes] = (heap() - empty) / kWaiters;
  board->figures[kThreads] = threads();
  board->ready = 1;
  const double cpu = cpu_seconds();
  nap_ms(kSeconds * 1e3);
  board->figures[kCpu] = 100 * (cpu_seconds() - cpu) / kSeconds;
  board->figures[kDriverBytes] = driver_bytes(arguments[0]);
  board->ready = 2;
  wait_until([&] { return board->stop.load(); });
  std::_Exit(0);  // ten thousand releases are not the point
}

}  // namespace simba::bench
