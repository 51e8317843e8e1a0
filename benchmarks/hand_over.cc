// SQLite: a mutex goes from one process to another, and to one of many who wait.
#include <memory>
#include <utility>

#include "benchmarks/catch.h"
#include "benchmarks/crowd.h"
#include "benchmarks/raw_bell.h"
#include "benchmarks/raw_sqlite.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"

namespace simba::bench {
namespace {

class RawBall : public Ball {
 public:
  RawBall(const std::string& file, std::string owner)
      : bell_(file + "-raw-bell"),
        db_(file, RawSqlite::Synchronous::kNormal),
        owner_(std::move(owner)) {}

  void lock() override {
    while ((token_ = db_.take("ball", owner_)) == 0) bell_.wait();
  }
  void unlock() override {
    db_.release("ball", owner_, token_);
    bell_.ring();
  }

 private:
  RawBell bell_;
  RawSqlite db_;
  const std::string owner_;
  std::int64_t token_ = 0;
};

Balls make_balls(const std::string& directory, const std::string& owner) {
  const Client client = connect("sqlite:" + directory + "/o.db");
  return {std::make_unique<RawBall>(directory + "/raw.db", owner), our_ball(client, "one"),
          std::make_unique<RawBall>(directory + "/raw-again.db", owner), our_ball(client, "two")};
}

Duel play(const Settings& settings, const std::string& name) {
  const std::string directory = settings.file(name), board = directory + "/board";
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  return play_catch(make_balls(directory, "first"), board,
                    {settings.program, "--peer", "hand-over", directory, board}, settings.seconds);
}

}  // namespace

void hand_over(const Settings& settings, Report& report) {
  const Duel unpinned = play(settings, "hand-over");
  const Pinned pin;
  const Duel pinned = play(settings, "hand-over-pinned");
  report.add(hand_over_row("sqlite hand-over, 1 waiter", pinned, unpinned));
}

int hand_over_peer(char** arguments) {
  play_along(make_balls(arguments[0], "second"), arguments[1], arguments[2]);
  return 0;
}

void hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const Pinned pin;
  Crowd crowd{.store = "sqlite", .waiters = {1, 10, 100, 200}, .url = {}, .note = {}};
  crowd.url = [&](int waiters) { return settings.url("crowd-" + std::to_string(waiters) + ".db"); };
  add_crowd_rows(crowd, settings, report);
}

}  // namespace simba::bench
