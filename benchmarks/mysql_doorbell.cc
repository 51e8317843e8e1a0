// MariaDB: what the doorbell is worth. The store as it is, against the same one that only polls: at
// the library's own pace, at one that is as quick, and at one that begins quick and backs off.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/catch.h"
#include "benchmarks/raw_mysql.h"
#include "benchmarks/server_rows.h"
#include "simba/async.h"
#include "simba/client.h"
#include "simba/mysql.h"
#include "testing/servers/mariadb.h"

namespace simba::bench {
namespace {

// The first poll comes after `first`, each further one after twice as long, until it is `most`.
struct Pace {
  std::string_view name;
  milliseconds first, most;
};
constexpr Pace kSlow{"1000", milliseconds{1'000}, milliseconds{1'000}};
constexpr Pace kQuick{"5", milliseconds{5}, milliseconds{5}};
constexpr Pace kAdaptive{"5-to-1000", milliseconds{5}, milliseconds{1'000}};
constexpr std::array kPaces{kSlow, kQuick, kAdaptive};
constexpr int kWaiters = 100;
constexpr double kGame = 30;  // seconds: a poll is once a second
constexpr double kSettleMs = 6'000, kIdleSeconds = 10;

// A store without its doorbell.
class Deaf : public Store {
 public:
  explicit Deaf(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  const StoreTraits& traits() const override { return store_->traits(); }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    return store_->contend(claims, deadline);
  }
  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    return store_->release(claims, deadline);
  }
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    return store_->observe(mutexes, deadline);
  }
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override {
    return store_->evict(mutex, wire_id, token, how, deadline);
  }
  std::unique_ptr<Watch> watch(std::string_view, std::string_view, std::function<void()>) override {
    return nullptr;
  }
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    return store_->list(prefix, after, limit, deadline);
  }

 private:
  const std::shared_ptr<Store> store_;
};

Client hearing(const std::string& url) { return Client(open_mysql(mysql_options(url))); }

Client polling(const std::string& url, const Pace& pace) {
  ClientOptions options;
  options.contend.safety_poll = pace.most;
  if (pace.first < pace.most) options.contend.first_poll = pace.first;
  return Client(std::make_shared<Deaf>(open_mysql(mysql_options(url))), options);
}

// Polling is the raw loop of these games.
Balls make_balls(const std::string& url, const Pace& pace) {
  const Client hears = hearing(url), polls = polling(url, pace);
  const std::string way(pace.name);
  return {our_ball(polls, "polled-" + way), our_ball(hears, "heard-" + way),
          our_ball(polls, "polled-again-" + way), our_ball(hears, "heard-again-" + way)};
}

// The other one waits by then, and the release comes in the middle between two of its polls.
double hold_ms(const Pace& pace) { return 20 + static_cast<double>(pace.most.count()) / 2; }

void add_hand_over(const std::string& url, const Pace& pace, const Settings& settings,
                   Report& report) {
  const std::string way(pace.name), board = settings.file("board-" + way);
  const Duel duel = play_catch(make_balls(url, pace), board,
                               {settings.program, "--peer", "mysql-doorbell", url, way, board},
                               kGame, hold_ms(pace));
  const Samples polled = duel.both_raw();
  Row row;
  row.name = "mysql hand-over, raw polls every " + way + " ms";
  row.ours = duel.ours.median() / 1e3;
  row.ours_p99 = duel.ours.quantile(0.99) / 1e3;
  row.raw = polled.median() / 1e3;
  row.raw_p99 = polled.quantile(0.99) / 1e3;
  row.ratio = duel.ratio();
  row.note = std::to_string(duel.ours.size()) + " hand-overs by the doorbell, " +
             std::to_string(polled.size()) + " by polling; not pinned";
  report.add(row);
}

// Questions a second of a hundred who wait for what somebody else holds. Those of one process share
// a client.
double questions(RawMysql& count, const std::vector<Client>& clients) {
  std::vector<PendingAcquire> waiting;
  for (int i = 0; i < kWaiters; ++i) {
    const Client& client = clients[static_cast<std::size_t>(i) % clients.size()];
    waiting.push_back(acquire_async(client, "held", {}, [](const Acquired&) {}));
  }
  nap_ms(kSettleMs);
  const double before = count.questions(), began = static_cast<double>(now_ns());
  nap_ms(kIdleSeconds * 1e3);
  const double asked = count.questions() - before;
  const double seconds = (static_cast<double>(now_ns()) - began) / 1e9;
  for (PendingAcquire& each : waiting) each.cancel();
  return asked / seconds;
}

// Stores of one process with the same options would share the connection that waits.
std::string url_apart(const servers::MariadbServer& server, int number) {
  return server.url("admin", "connections=2&connect_timeout=" + std::to_string(10 + number));
}

void add_idle(const servers::MariadbServer& server, int processes, Report& report) {
  RawMysql count(server.port(), "counted");
  const auto ask = [&](auto make) {
    std::vector<Client> clients;
    for (int i = 0; i < processes; ++i) clients.push_back(make(url_apart(server, i)));
    return questions(count, clients);
  };
  Row row;
  row.name = "mysql 100 idle waiters, " + std::to_string(processes) +
             (processes == 1 ? " process" : " processes");
  row.unit = "/s";
  row.ours = ask(hearing);
  row.raw = ask([](const std::string& url) { return polling(url, kSlow); });
  row.note = "queries; raw polls every 1000 ms; every 5 ms it asks " +
             fixed(ask([](const std::string& url) { return polling(url, kQuick); }), 0) +
             ", every 5 to 1000 ms " +
             fixed(ask([](const std::string& url) { return polling(url, kAdaptive); }), 0);
  report.add(row);
}

}  // namespace

void mysql_doorbell(const Settings& settings, Report& report) {
  servers::MariadbSettings chosen;
  chosen.is_durable = true;
  const auto server =
      start_server<servers::MariadbServer>("mysql hand-over, raw polls", report, chosen);
  if (!server) return;
  for (const Pace& pace : kPaces) add_hand_over(server->url(), pace, settings, report);
  const auto holder = open_mysql(mysql_options(server->url()));
  const Claim claim{"held", "holder~1", 0, 0, milliseconds{600'000}, milliseconds{6'000}};
  holder->contend({&claim, 1}, BootClock::now() + milliseconds{10'000});
  for (const int processes : {1, kWaiters}) add_idle(*server, processes, report);
}

int mysql_doorbell_peer(char** arguments) {
  const std::string_view name = arguments[1];
  const auto* pace = std::find_if(kPaces.begin(), kPaces.end(),
                                  [&](const Pace& each) { return each.name == name; });
  expect(pace != kPaces.end(), "there is no such pace");
  play_along(make_balls(arguments[0], *pace), arguments[2], arguments[3], hold_ms(*pace));
  return 0;
}

}  // namespace simba::bench
