// MariaDB: lock and unlock, a lost attempt, a hand-over and renewals, against the raw
// statements.
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/raw_mysql.h"
#include "benchmarks/settings.h"
#include "simba/async.h"
#include "simba/connect.h"
#include "simba/locker.h"
#include "simba/mysql.h"
#include "simba/store.h"
#include "testing/servers/mariadb.h"

namespace simba::bench {
namespace {

constexpr const char* kMutex = "nightly-report";
constexpr const char* kOwner = "0:12345@some-host~0123456789abc";  // as long as a wire id of ours
constexpr double kPairTarget = 0.92, kSeedTarget = 1.35;
constexpr double kHandOverTarget = 0.8;  // 1.25 times the raw wake-up and claim

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simba_bench: %s\n", what);
  std::exit(2);
}

// A server that flushes what it commits; none where this machine has none.
std::unique_ptr<servers::MariadbServer> start_server(const char* row, Report& report) {
  try {
    servers::MariadbSettings settings;
    settings.is_durable = true;
    auto server = std::make_unique<servers::MariadbServer>(settings);
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

// Connections that it opens from now on run where this thread may.
void bring_here(const servers::MariadbServer& server) {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  sched_setaffinity(server.pid(), sizeof mine, &mine);
}

struct RawPair {
  RawMysql db;
  void operator()() {
    const std::uint64_t token = db.take(kMutex, kOwner);
    expect(token != 0 && db.release(kMutex, kOwner, token), "the raw loop did not get the mutex");
  }
};

Duel locker_against_raw(const servers::MariadbServer& server, double seconds) {
  RawPair raw{{server.port(), "raw"}};
  RawPair raw_again{{server.port(), "raw_again"}};
  const Client client = connect(server.url());
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      });
}

struct SeedPair {
  RawMysql db;
  void operator()() {
    expect(db.take_by_transaction(kMutex, kOwner) && db.release_by_text(kMutex, kOwner),
           "the seeds' loop did not get the mutex");
  }
};

Duel locker_against_seed(const servers::MariadbServer& server, double seconds) {
  SeedPair seed{{server.port(), "seed"}};
  SeedPair seed_again{{server.port(), "seed_again"}};
  for (SeedPair* pair : {&seed, &seed_again}) {
    expect(pair->db.take(kMutex, kOwner) != 0 && pair->db.release(kMutex, kOwner, 0), "no row");
  }
  const Client client = connect(server.url());
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { seed(); }, [&] { seed_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      });
}

Duel lost_against_raw(const servers::MariadbServer& server, double seconds) {
  RawMysql raw(server.port(), "raw"), raw_again(server.port(), "raw_again");
  for (RawMysql* db : {&raw, &raw_again}) expect(db->take("lost", "another") != 0, "not taken");
  const std::shared_ptr<Store> store = open_store(server.url());
  Claim claim{"lost", "another", 0, 0, milliseconds{600'000}, milliseconds{6'000}};
  const auto ask = [&] {
    const Answers answers = store->contend({&claim, 1}, BootClock::now() + milliseconds{1'000});
    return std::get<Observation>(answers.at(0)).owner.id;
  };
  expect(ask() == "another", "the mutex to be lost was not free");
  claim.wire_id = kOwner;
  const auto lose = [](RawMysql& db) { expect(db.take("lost", kOwner) == 0, "it was granted"); };
  return duel(
      seconds, [&] { lose(raw); }, [&] { lose(raw_again); },
      [&] { expect(ask() == "another", "a held mutex was granted"); });
}

void add_row(const servers::MariadbServer& server, Report& report, const char* name,
             Duel (*measure)(const servers::MariadbServer&, double), double seconds,
             std::optional<double> target) {
  const Duel unpinned = measure(server, seconds / 2);
  const Pinned pin;
  bring_here(server);
  const Duel pinned = measure(server, seconds);
  report.add(row_of(name, pinned, &unpinned, target));
}

class RawBall : public Ball {
 public:
  RawBall(std::uint16_t port, const std::string& table, std::string owner)
      : db_(port, table), bell_(port, table), owner_(std::move(owner)) {
    bell_.wait_at_bell("ball");
    db_.never_ring(bell_.id());
  }
  void lock() override {
    while ((token_ = db_.take("ball", owner_)) == 0) bell_.wait_for_ring("ball");
  }
  void unlock() override { db_.release("ball", owner_, token_); }

 private:
  RawMysql db_, bell_;
  const std::string owner_;
  std::uint64_t token_ = 0;
};

class OurBall : public Ball {
 public:
  OurBall(const Client& client, std::string mutex) : locker_(client, std::move(mutex)) {}
  void lock() override { locker_.lock(); }
  void unlock() override { locker_.unlock(); }

 private:
  SimbaLocker locker_;
};

Balls make_balls(const std::string& url, const std::string& owner) {
  const Client client = connect(url);
  const std::uint16_t port = mysql_options(url).hosts.at(0).second;
  return {std::make_unique<RawBall>(port, "raw", owner), std::make_unique<OurBall>(client, "one"),
          std::make_unique<RawBall>(port, "raw_again", owner),
          std::make_unique<OurBall>(client, "two")};
}

// Without what they hold from an earlier game.
void clear_tables(const servers::MariadbServer& server) {
  for (const char* table : {"raw", "raw_again"}) {
    RawMysql db(server.port(), table);
    for (const char* owner : {"first", "second"}) db.release("ball", owner, 0);
  }
}

Duel play(const Settings& settings, const servers::MariadbServer& server, const char* board,
          double seconds) {
  clear_tables(server);
  return play_catch(make_balls(server.url(), "first"), settings.file(board),
                    {settings.program, "--peer", "mysql-catch", server.url(), settings.file(board)},
                    seconds);
}

std::string in_us(const Samples& samples) {
  return fixed(samples.median() / 1e3, 0) + " us, p99 " + fixed(samples.quantile(0.99) / 1e3, 0);
}

constexpr int kHeld = 10'000;

std::string name_of(int i) { return "order-" + std::to_string(100'000 + i); }

}  // namespace

void mysql_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql lock+unlock";
  const auto server = start_server(kName, report);
  if (!server) return;
  add_row(*server, report, kName, locker_against_raw, settings.seconds, kPairTarget);
}

void mysql_seed(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql lock+unlock, raw is the seeds' way";
  const auto server = start_server(kName, report);
  if (!server) return;
  add_row(*server, report, kName, locker_against_seed, settings.seconds, kSeedTarget);
}

void mysql_lost(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql claim of a held mutex";
  const auto server = start_server(kName, report);
  if (!server) return;
  add_row(*server, report, kName, lost_against_raw, settings.seconds, {});
}

void mysql_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql hand-over, 1 waiter";
  const auto server = start_server(kName, report);
  if (!server) return;
  const Duel unpinned = play(settings, *server, "catch", settings.seconds);
  const Pinned pin;
  bring_here(*server);
  const Duel pinned = play(settings, *server, "catch-pinned", settings.seconds);
  Row row = row_of(kName, pinned, &unpinned, kHandOverTarget);
  row.note = "not pinned: ours " + in_us(unpinned.ours) + "; raw " + in_us(unpinned.both_raw());
  report.add(row);
}

int mysql_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2]);
  return 0;
}

void mysql_renewal(const Settings&, Report& report) {
  Row row;
  row.name = "mysql renewal of 10,000, CPU";
  const auto server = start_server(row.name.c_str(), report);
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
  const Client client = connect(server->url(), options);
  for (int i = 0; i < kHeld; ++i) {
    acquire_async(client, name_of(i), {}, [&](Acquired got) {
      const std::lock_guard lock(guard);
      held.push_back(std::move(got.held));
      ++acquired;
    });
  }
  wait_until([&] { return acquired == kHeld; });
  nap_ms(8'000);  // until the renewals have found their rhythm
  constexpr double kSeconds = 14;
  calls = renewed = 0;
  failed = lost = 0;
  const double before = cpu_seconds();
  nap_ms(kSeconds * 1e3);
  const double used = 100 * (cpu_seconds() - before) / kSeconds;
  row.unit = "%";
  row.ours = used;
  row.target = "<= 10 % core";
  row.verdict = used <= 10 && failed == 0 && lost == 0 ? Verdict::kMet : Verdict::kMissed;
  row.note = std::to_string(renewed) + " renewals in " + fixed(kSeconds, 0) + " s, " +
             std::to_string(failed) + " failed, " + std::to_string(lost) + " lost, " +
             std::to_string(threads()) + " threads";
  report.add(row);
  Row batch;
  batch.name = "mysql renewal, claims per call";
  batch.unit = "";
  batch.ours = static_cast<double>(renewed) / static_cast<double>(calls);
  batch.target = ">= 100";
  batch.verdict = *batch.ours >= 100 ? Verdict::kMet : Verdict::kMissed;
  report.add(batch);
  const std::lock_guard lock(guard);
  held.clear();
}

}  // namespace simba::bench
