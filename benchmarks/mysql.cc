// MariaDB: lock and unlock, a lost attempt, a hand-over and renewals, against the raw statements.
#include <memory>
#include <utility>

#include "benchmarks/crowd.h"
#include "benchmarks/held.h"
#include "benchmarks/raw_mysql.h"
#include "benchmarks/sql_rows.h"
#include "simba/mysql.h"
#include "testing/servers/mariadb.h"

namespace simba::bench {
namespace {

using Server = servers::MariadbServer;
constexpr double kSeedTarget = 1.35;

// One that flushes what it commits.
std::unique_ptr<Server> start(const char* row, Report& report) {
  servers::MariadbSettings settings;
  settings.is_durable = true;
  return start_server<Server>(row, report, settings);
}

Duel locker_against_raw(const Server& server, double seconds) {
  RawPair<RawMysql> raw{{server.port(), "raw"}}, raw_again{{server.port(), "raw_again"}};
  return locker_against(
      server.url(), [&] { raw(); }, [&] { raw_again(); }, seconds);
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

Balls make_balls(const std::string& url, const std::string& owner) {
  const std::uint16_t port = mysql_options(url).hosts.at(0).second;
  return balls_of(url,
                  [&](const char* table) { return std::make_unique<RawBall>(port, table, owner); });
}

// Without what they hold from an earlier game.
void clear_tables(const Server& server) {
  for (const char* table : {"raw", "raw_again"}) {
    RawMysql db(server.port(), table);
    for (const char* owner : {"first", "second"}) db.release("ball", owner, 0);
  }
}

}  // namespace

void mysql_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql lock+unlock";
  const auto server = start(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) { return locker_against_raw(*server, seconds); };
  add_row(*server, report, kName, measure, settings.seconds, kPairTarget);
}

void mysql_seed(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql lock+unlock, raw is the seeds' way";
  const auto server = start(kName, report);
  if (!server) return;
  add_seed_row<RawMysql>(*server, server->port(), report, kName, settings.seconds, kSeedTarget);
}

void mysql_lost(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql claim of a held mutex";
  const auto server = start(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) {
    Tables<RawMysql> tables{{server->port(), "raw"}, {server->port(), "raw_again"}};
    return lost_against_raw(server->url(), tables, seconds);
  };
  add_row(*server, report, kName, measure, settings.seconds, {});
}

void mysql_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "mysql hand-over, 1 waiter";
  const auto server = start(kName, report);
  if (!server) return;
  add_hand_over_row(*server, report, kName, [&](const std::string& game) {
    const std::string url = server->url(), board = settings.file(game);
    clear_tables(*server);
    return play_catch(make_balls(url, "first"), board,
                      {settings.program, "--peer", "mysql-catch", url, board}, settings.seconds);
  });
}

void mysql_hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const auto server = start("mysql hand-over to 1 of many", report);
  if (!server) return;
  Crowd crowd{.store = "mysql", .waiters = {1, 32, 200}, .url = {}, .settle_ms = 1'000, .note = {}};
  crowd.url = [&](int) { return server->url(); };
  add_crowd_rows(crowd, settings, report);
}

int mysql_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2]);
  return 0;
}

void mysql_renewal(const Settings&, Report& report) {
  const auto server = start("mysql renewal of 10,000, CPU", report);
  if (server) add_renewal_rows("mysql", server->url(), report);
}

}  // namespace simba::bench
