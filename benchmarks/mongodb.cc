// MongoDB, a replica set of one: lock and unlock, a hand-over and renewals, against the raw driver.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/catch.h"
#include "benchmarks/raw_mongodb.h"
#include "benchmarks/server_rows.h"
#include "simba/connect.h"
#include "simba/store.h"
#include "testing/servers/mongodb.h"

namespace simba::bench {
namespace {

using Server = servers::MongodbServer;
constexpr double kHold = 4;  // milliseconds: a claim in vain takes longer here

std::string ours(const Server& server) { return server.url({}, "database=bench"); }

Duel locker_against_raw(const Server& server, double seconds) {
  RawPair<RawMongodb> raw{{server.url(), "raw"}}, raw_again{{server.url(), "raw_again"}};
  raw.db.create(kMutex);
  raw_again.db.create(kMutex);
  return locker_against(
      ours(server), [&] { raw(); }, [&] { raw_again(); }, seconds);
}

constexpr std::size_t kHeld = 1'000;

Duel renewals_against_raw(const Server& server, double seconds) {
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

Balls make_balls(const std::string& url, const std::string& owner) {
  const Client client = connect(url + "&database=bench");
  return {std::make_unique<RawBall>(url, "raw", owner), our_ball(client, "one"),
          std::make_unique<RawBall>(url, "raw_again", owner), our_ball(client, "two")};
}

}  // namespace

void mongodb_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb lock+unlock";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) { return locker_against_raw(*server, seconds); };
  add_row(*server, report, kName, measure, settings.seconds, kPairTarget);
}

void mongodb_renewal(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb renewal of 1,000 in one call";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) { return renewals_against_raw(*server, seconds); };
  add_row(*server, report, kName, measure, settings.seconds, {});
}

void mongodb_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "mongodb hand-over, 1 waiter";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  add_hand_over_row(*server, report, kName, [&](const std::string& game) {
    const std::string url = server->url(), board = settings.file(game);
    for (const char* collection : {"raw", "raw_again"}) RawMongodb(url, collection).create("ball");
    return play_catch(make_balls(url, "first"), board,
                      {settings.program, "--peer", "mongodb-catch", url, board}, settings.seconds,
                      kHold);
  });
}

int mongodb_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2], kHold);
  return 0;
}

}  // namespace simba::bench
