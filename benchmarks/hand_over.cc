// A mutex goes from one process to another: from before the release until the other one has it.
#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "benchmarks/board.h"
#include "benchmarks/processes.h"
#include "benchmarks/raw_bell.h"
#include "benchmarks/raw_sqlite.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

constexpr double kTarget = 0.8;  // 1.25 times the raw wake-up and claim
constexpr double kMoreWaiters = 1.5;
constexpr double kHoldMs = 0.5;  // long enough for the other one to be waiting

// A mutex that goes to and fro.
class Ball {
 public:
  virtual ~Ball() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
};

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

class OurBall : public Ball {
 public:
  OurBall(const Client& client, std::string mutex) : locker_(client, std::move(mutex)) {}
  void lock() override { locker_.lock(); }
  void unlock() override { locker_.unlock(); }

 private:
  SimbaLocker locker_;
};

// Two processes hand four balls over to each other, one after the other: raw, ours, raw, ours.
class Player {
 public:
  enum class Side { kFirst, kSecond };

  Player(const std::string& directory, Side side)
      : side_(side),
        board_(directory + "/board"),
        client_(connect("sqlite:" + directory + "/o.db")) {
    const std::string owner = side == Side::kFirst ? "first" : "second";
    balls_[0] = std::make_unique<RawBall>(directory + "/raw.db", owner);
    balls_[1] = std::make_unique<OurBall>(client_, "one");
    balls_[2] = std::make_unique<RawBall>(directory + "/raw-again.db", owner);
    balls_[3] = std::make_unique<OurBall>(client_, "two");
  }

  Notes& notes() { return *board_; }
  void take_all() {
    for (auto& ball : balls_) ball->lock();
  }

  // Until about `end`; the balls stay with whoever has them then.
  void play(std::int64_t end) {
    for (std::uint64_t step = 0; board_->end == 0 || step < board_->end; ++step) {
      const bool first_gives = step / balls_.size() % 2 == 0;
      Ball& ball = *balls_[step % balls_.size()];
      if (first_gives == (side_ == Side::kFirst)) {
        give(ball, step, end);
      } else {
        ball.lock();
        board_->add_sample(now_ns() - board_->released_at);
      }
    }
  }

 private:
  // Who gives the last one says so first: the other must not wait for one more.
  void give(Ball& ball, std::uint64_t step, std::int64_t end) {
    wait_until([&] { return board_->step >= step; });
    nap_ms(kHoldMs);
    if (now_ns() > end || step + 1 >= board_->samples.size()) board_->end = step + 1;
    board_->released_at = now_ns();
    ball.unlock();
  }

  const Side side_;
  const Board board_;
  const Client client_;
  std::array<std::unique_ptr<Ball>, 4> balls_;
};

Duel play(const Settings& settings, const std::string& name, double seconds) {
  const std::string directory = settings.file(name);
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  Player first(directory, Player::Side::kFirst);
  first.take_all();
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  const Process second({settings.program, "--peer", "hand-over", directory, std::to_string(end)});
  first.play(end);
  Duel duel;
  const std::array<Samples*, 4> kinds{&duel.raw, &duel.ours, &duel.raw_again, &duel.ours};
  for (std::uint64_t i = 8; i < first.notes().step; ++i) {
    kinds[i % kinds.size()]->add(static_cast<double>(first.notes().samples[i]));
  }
  return duel;
}

// --- one of many ---------------------------------------------------------------------------------

void join_crowd(const Client& client, Notes& notes, std::int64_t self) {
  SimbaLocker locker(client, "crowd");
  while (!notes.stop) {
    locker.lock();
    const std::int64_t now = now_ns();
    if (notes.holder.exchange(self) != 0 && notes.released_at != 0) {
      notes.add_sample(now - notes.released_at);
    }
    nap_ms(2 * kHoldMs);
    notes.released_at = now_ns();
    locker.unlock();
    // Who comes back at once would only measure itself.
    wait_until([&] { return notes.holder != self || notes.stop; });
  }
}

Samples hand_over_in_crowd(const Settings& settings, int waiters, double seconds) {
  const std::string name = "crowd-" + std::to_string(waiters);
  const Board board(settings.file(name));
  std::vector<Process> processes;
  int next = 1;
  for (int process = 0; process < 2; ++process) {
    const int size = (waiters + 1 + process) / 2;
    processes.push_back(Process({settings.program, "--peer", "crowd", settings.url(name + ".db"),
                                 settings.file(name), std::to_string(next), std::to_string(size)}));
    next += size;
  }
  wait_until([&] { return board->ready == 2; });
  board->go = true;
  nap_ms(300);
  const std::uint64_t begin = board->step;
  nap_ms(seconds * 1e3);
  const std::uint64_t end = std::min<std::uint64_t>(board->step, board->samples.size());
  board->stop = true;
  Samples samples;
  for (std::uint64_t i = begin; i < end; ++i) samples.add(static_cast<double>(board->samples[i]));
  return samples;
}

}  // namespace

void hand_over(const Settings& settings, Report& report) {
  const Duel unpinned = play(settings, "hand-over", settings.seconds);
  const Pinned pin;
  const Duel pinned = play(settings, "hand-over-pinned", settings.seconds);
  Row row = row_of("sqlite hand-over, 1 waiter", pinned, &unpinned, kTarget);
  row.note = "not pinned: ours " + fixed(unpinned.ours.median() / 1e3, 0) + " us, p99 " +
             fixed(unpinned.ours.quantile(0.99) / 1e3, 0) + "; raw " +
             fixed(unpinned.both_raw().median() / 1e3, 0) + " us, p99 " +
             fixed(unpinned.both_raw().quantile(0.99) / 1e3, 0);
  report.add(row);
}

void hand_over_to_one_of_many(const Settings& settings, Report& report) {
  const Pinned pin;
  Samples one;
  for (const int waiters : {1, 10, 100}) {
    const Samples samples = hand_over_in_crowd(settings, waiters, settings.seconds);
    if (waiters == 1) one = samples;
    Row row;
    row.name = "sqlite hand-over to 1 of " + std::to_string(waiters);
    row.ours = samples.median() / 1e3;
    row.ours_p99 = samples.quantile(0.99) / 1e3;
    row.ratio = one.median() / samples.median();
    row.note = std::to_string(samples.size()) + " hand-overs; the ratio is to one waiter";
    if (waiters > 1) {
      row.target = "<= 1.5 times";
      row.verdict = *row.ratio >= 1 / kMoreWaiters ? Verdict::kMet : Verdict::kMissed;
    }
    report.add(row);
  }
}

int hand_over_peer(char** arguments) {
  Player second(arguments[0], Player::Side::kSecond);
  second.play(std::atoll(arguments[1]));
  return 0;
}

int crowd_peer(char** arguments) {
  const Client client = connect(arguments[0]);
  const Board board(arguments[1]);
  const int first = std::atoi(arguments[2]), size = std::atoi(arguments[3]);
  board->ready.fetch_add(1);
  wait_until([&] { return board->go.load(); });
  std::vector<std::jthread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, self = first + i] { join_crowd(client, *board, self); });
  }
  return 0;
}

}  // namespace simba::bench
