// PostgreSQL: lock and unlock, a lost attempt, a hand-over and renewals, against the raw
// statements; a hand-over to one of many.
#include <memory>
#include <utility>

#include "benchmarks/crowd.h"
#include "benchmarks/held.h"
#include "benchmarks/raw_postgres.h"
#include "benchmarks/sql_rows.h"
#include "testing/servers/postgres_server.h"

namespace simba::bench {
namespace {

using Server = servers::PostgresServer;
constexpr double kSeedTarget = 1.15;

// One that flushes what it commits.
std::unique_ptr<Server> start(const char* row, Report& report) {
  servers::PostgresSettings settings;
  settings.is_durable = true;
  return start_server<Server>(row, report, settings);
}

Duel locker_against_raw(const std::string& url, double seconds) {
  RawPair<RawPostgres> raw{{url, "raw"}}, raw_again{{url, "raw_again"}};
  return locker_against(
      url, [&] { raw(); }, [&] { raw_again(); }, seconds);
}

class RawBall : public Ball {
 public:
  RawBall(const std::string& url, const std::string& table, std::string owner)
      : db_(url, table), bell_(url, table), owner_(std::move(owner)) {
    bell_.listen();
  }
  void lock() override {
    while ((token_ = db_.take("ball", owner_)) == 0) bell_.wait_for_notification();
  }
  void unlock() override { db_.release("ball", owner_, token_); }

 private:
  RawPostgres db_, bell_;
  const std::string owner_;
  std::int64_t token_ = 0;
};

Balls make_balls(const std::string& url, const std::string& owner) {
  return balls_of(url,
                  [&](const char* table) { return std::make_unique<RawBall>(url, table, owner); });
}

// Without what they hold from an earlier game.
void clear_tables(const std::string& url) {
  for (const char* table : {"raw", "raw_again"}) {
    RawPostgres db(url, table);
    for (const char* owner : {"first", "second"}) db.release("ball", owner, 0);
  }
}

}  // namespace

void postgres_pair(const Settings& settings, Report& report) {
  constexpr const char* kName = "postgres lock+unlock";
  const auto server = start(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) { return locker_against_raw(server->url(), seconds); };
  add_row(*server, report, kName, measure, settings.seconds, kPairTarget);
}

void postgres_seed(const Settings& settings, Report& report) {
  constexpr const char* kName = "postgres lock+unlock, raw is the seeds' way";
  const auto server = start(kName, report);
  if (!server) return;
  add_seed_row<RawPostgres>(*server, server->url(), report, kName, settings.seconds, kSeedTarget);
}

void postgres_lost(const Settings& settings, Report& report) {
  constexpr const char* kName = "postgres claim of a held mutex";
  const auto server = start(kName, report);
  if (!server) return;
  const auto measure = [&](double seconds) {
    Tables<RawPostgres> tables{{server->url(), "raw"}, {server->url(), "raw_again"}};
    return lost_against_raw(server->url(), tables, seconds);
  };
  add_row(*server, report, kName, measure, settings.seconds, {});
}

void postgres_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "postgres hand-over, 1 waiter";
  const auto server = start(kName, report);
  if (!server) return;
  add_hand_over_row(*server, report, kName, [&](const std::string& game) {
    const std::string url = server->url(), board = settings.file(game);
    clear_tables(url);
    return play_catch(make_balls(url, "first"), board,
                      {settings.program, "--peer", "postgres-catch", url, board}, settings.seconds);
  });
}

void postgres_hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const auto server = start("postgres hand-over to 1 of many", report);
  if (!server) return;
  Crowd crowd{
      .store = "postgres", .waiters = {1, 32, 200}, .url = {}, .settle_ms = 1'000, .note = {}};
  crowd.url = [&](int) { return server->url(); };
  add_crowd_rows(crowd, settings, report);
}

int postgres_catch_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2]);
  return 0;
}

void postgres_renewal(const Settings&, Report& report) {
  const auto server = start("postgres renewal of 10,000, CPU", report);
  if (server) add_renewal_rows("postgres", server->url(), report);
}

}  // namespace simba::bench
