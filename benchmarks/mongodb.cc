// MongoDB, a replica set of one: lock and unlock, a hand-over and renewals, against the raw driver.
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/catch.h"
#include "benchmarks/raw_mongodb.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"
#include "simba/store.h"
#include "testing/servers/mongodb.h"

namespace simba::bench {
namespace {

constexpr const char* kMutex = "nightly-report";
constexpr const char* kOwner = "0:12345@some-host~0123456789abc";  // as long as a wire id of ours
constexpr double kPairTarget = 0.92;
constexpr double kHandOverTarget = 0.8;  // 1.25 times the raw event and claim
constexpr double kHold = 4;              // milliseconds: a claim in vain takes longer here

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simba_bench: %s\n", what);
  std::exit(2);
}

std::unique_ptr<servers::MongodbServer> start_server(const char* row, Report& report) {
  try {
    auto server = std::make_unique<servers::MongodbServer>();
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

std::string ours(const servers::MongodbServer& server) { return server.url({}, "database=bench"); }

// Threads that it starts from now on run where this thread may, and those that it has.
void bring_here(const servers::MongodbServer& server) {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(server.pid()) + "/task")) {
    sched_setaffinity(std::stoi(task.path().filename().string()), sizeof mine, &mine);
  }
}

struct RawPair {
  RawMongodb db;
  void operator()() {
    const std::int64_t token = db.take(kMutex, kOwner);
    expect(token != 0 && db.release(kMutex, kOwner, token), "the raw loop did not get the mutex");
  }
};

Duel locker_against_raw(const servers::MongodbServer& server, double seconds) {
  RawPair raw{{server.url(), "raw"}}, raw_again{{server.url(), "raw_again"}};
  raw.db.create(kMutex);
  raw_again.db.create(kMutex);
  const Client client = connect(ours(server));
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      });
}

constexpr std::size_t kHeld = 1'000;

Duel renewals_against_raw(const servers::MongodbServer& server, double seconds) {
  std::vector<std::string> names, owners;
  for (std::size_t i = 0; i < kHeld; ++i) {
    names.push_back("order-" + std::to_string(100'000 + i));
    owners.push_back("0:12345@some-host~" + std::to_string(1'000'000'000'000 + i));
  }
  RawMongodb raw(server.url(), "raw_many"), raw_again(server.url(), "raw_many_again");
  for (RawMongodb* db : {&raw, &raw_again}) {
    for (std::size_t i = 0; i < kHeld; ++i) {
      db->create(names[i]);
      expect(db->take(names[i], owners[i]) != 0, "not taken");
    }
  }
  const std::shared_ptr<Store> store = open_store(ours(server));
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < kHeld; ++i) {
    claims.push_back({names[i], owners[i], 0, 0, milliseconds{10'000}, milliseconds{6'000}});
  }
  const Answers taken = store->contend(claims, BootClock::now() + milliseconds{60'000});
  for (std::size_t i = 0; i < kHeld; ++i) {
    claims[i].token = std::get<Observation>(taken[i]).owner.token;
  }
  const auto renew = [&](RawMongodb& db) {
    expect(db.renew(names, owners) == static_cast<std::int64_t>(kHeld), "raw: not all renewed");
  };
  return duel(
      seconds, [&] { renew(raw); }, [&] { renew(raw_again); },
      [&] {
        const Answers all = store->contend(claims, BootClock::now() + milliseconds{60'000});
        expect(std::get<Observation>(all.back()).owner.token == claims.back().token, "lost");
      });
}

void add_row(const servers::MongodbServer& server, Report& report, const char* name,
             Duel (*measure)(const servers::MongodbServer&, double), double seconds,
             std::optional<double> target) {
  const Duel unpinned = measure(server, seconds / 2);
  const Pinned pin;
  bring_here(server);
  const Duel pinned = measure(server, seconds);
  report.add(row_of(name, pinned, &unpinned, target));
}

class RawBall : public Ball {
 public:
  RawBall(const std::string& url, const std::string& collection, std::string owner)
      : db_(url, collection), bell_(url, collection), owner_(std::move(owner)) {
    bell_.listen();
  }
  void lock() override {
    while ((token_ = db_.take("ball", owner_)) == 0) bell_.wait_for_release();
  }
  void unlock() override { db_.release("ball", owner_, token_); }

 private:
  RawMongodb db_, bell_;
  const std::string owner_;
  std::int64_t token_ = 0;
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
  const Client client = connect(url + "&database=bench");
  return {std::make_unique<RawBall>(url, "raw", owner), std::make_unique<OurBall>(client, "one"),
          std::make_unique<RawBall>(url, "raw_again", owner),
          std::make_unique<OurBall>(client, "two")};
}

Duel play(const Settings& settings, const servers::MongodbServer& server, const char* board,
          double seconds) {
  for (const char* collection : {"raw", "raw_again"}) {
    RawMongodb(server.url(), collection).create("ball");
  }
  return play_catch(
      make_balls(server.url(), "first"), settings.file(board),
      {settings.program, "--peer", "mongodb-catch", server.url(), settings.file(board)}, seconds,
      kHold);
}

std::string in_us(const Samples& samples) {
  return fixed(samples.median() / 1e3, 0) + " us, p99 " + fixed(samples.quantile(0.99) / 1e3, 0);
}

}  // namespace

void mongodb_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb lock+unlock";
  const auto server = start_server(kName, report);
  if (!server) return;
  add_row(*server, report, kName, locker_against_raw, settings.seconds, kPairTarget);
}

void mongodb_renewal(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb renewal of 1,000 in one call";
  const auto server = start_server(kName, report);
  if (!server) return;
  add_row(*server, report, kName, renewals_against_raw, settings.seconds, {});
}

void mongodb_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb hand-over, 1 waiter";
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

int mongodb_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2], kHold);
  return 0;
}

}  // namespace simba::bench
