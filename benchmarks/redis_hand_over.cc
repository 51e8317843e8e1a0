// Redis: a mutex goes from one process to another, and to one of many who wait.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/catch.h"
#include "benchmarks/crowd.h"
#include "benchmarks/raw_redis.h"
#include "benchmarks/redis_server.h"
#include "benchmarks/server_rows.h"
#include "simba/connect.h"

namespace simba::bench {
namespace {

using Server = servers::RedisServer;

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

// With all that the store's calls do: token, messages, queue.
class ScriptBall : public Ball {
 public:
  ScriptBall(int port, const std::string& key, std::string owner)
      : db_(port, "simba:{" + key + '}'), owner_(std::move(owner)) {
    db_.listen(owner_);
  }
  void lock() override {
    auto came = RawRedis::Came::kFirst;
    while (!db_.take_or_queue_by_script(owner_, came)) {
      db_.wait();
      came = RawRedis::Came::kAgain;
    }
  }
  void unlock() override { db_.release_by_script(owner_); }

 private:
  RawRedis db_;
  const std::string owner_;
};

template <class Raw>
Balls make_balls(const std::string& url, int port, const std::string& game,
                 const std::string& owner) {
  const Client client = connect(url);
  return {std::make_unique<Raw>(port, game + "-raw", owner), our_ball(client, game + "-one"),
          std::make_unique<Raw>(port, game + "-raw-again", owner), our_ball(client, game + "-two")};
}

// What both processes call the games with the scripts of the store.
constexpr const char* kScripts = "scripts-";

Balls balls_of(const std::string& url, int port, const std::string& game,
               const std::string& owner) {
  return game.starts_with(kScripts) ? make_balls<ScriptBall>(url, port, game, owner)
                                    : make_balls<RawBall>(url, port, game, owner);
}

double commands_of(const Server& server) {
  return std::atof(server.info("total_commands_processed").c_str());
}

}  // namespace

void redis_hand_over(const Settings& settings, Report& report) {
  constexpr const char* kName = "redis hand-over, 1 waiter";
  const auto server = start_server<Server>(kName, report);
  if (!server) return;
  const auto play = [&](const std::string& game) {
    const std::string url = bench_url(*server), port = std::to_string(server->port());
    const std::string board = settings.file(game);
    return play_catch(balls_of(url, server->port(), game, "first"), board,
                      {settings.program, "--peer", "redis-catch", url, port, board, game},
                      settings.seconds);
  };
  add_hand_over_row(*server, report, kName,
                    [&](const std::string& game) { return play(kScripts + game); });
  add_hand_over_row(*server, report, "redis hand-over, raw is the least", play, std::nullopt);
}

int redis_catch_peer(char** arguments) {
  play_along(balls_of(arguments[0], std::atoi(arguments[1]), arguments[3], "second"), arguments[2],
             arguments[4]);
  return 0;
}

void redis_hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const auto server = start_server<Server>("redis hand-over to 1 of many", report);
  if (!server) return;
  const Pinned pin;
  bring_here(*server);
  double before = commands_of(*server);
  Crowd crowd{.store = "redis", .waiters = {1, 32, 200}, .url = {}, .settle_ms = 1'000, .note = {}};
  crowd.url = [&](int) { return bench_url(*server); };
  crowd.note = [&](std::size_t hand_overs) {
    const double commands = commands_of(*server) - std::exchange(before, commands_of(*server));
    return "about " + fixed(commands / static_cast<double>(hand_overs), 1) +
           " commands each (start and end counted in)";
  };
  add_crowd_rows(crowd, settings, report);
}

}  // namespace simba::bench
