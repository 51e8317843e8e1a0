#include "benchmarks/catch.h"

#include <cstdlib>
#include <utility>

#include "benchmarks/board.h"
#include "benchmarks/processes.h"
#include "simba/locker.h"

namespace simba::bench {
namespace {

class OurBall : public Ball {
 public:
  OurBall(const Client& client, std::string mutex) : locker_(client, std::move(mutex)) {}
  void lock() override { locker_.lock(); }
  void unlock() override { locker_.unlock(); }

 private:
  SimbaLocker locker_;
};

std::string in_us(const Samples& samples) {
  return fixed(samples.median() / 1e3, 0) + " us, p99 " + fixed(samples.quantile(0.99) / 1e3, 0);
}

constexpr std::uint64_t kWarmUp = 8;

class Player {
 public:
  enum class Side { kFirst, kSecond };

  Player(Balls balls, const std::string& board, Side side, double hold_ms)
      : side_(side), hold_ms_(hold_ms), board_(board), balls_(std::move(balls)) {}

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
    nap_ms(hold_ms_);
    if (now_ns() > end || step + 1 >= board_->samples.size()) board_->end = step + 1;
    board_->released_at = now_ns();
    ball.unlock();
  }

  const Side side_;
  const double hold_ms_;
  const Board board_;
  Balls balls_;
};

}  // namespace

std::unique_ptr<Ball> our_ball(const Client& client, std::string mutex) {
  return std::make_unique<OurBall>(client, std::move(mutex));
}

Duel play_catch(Balls balls, const std::string& board, std::vector<std::string> peer,
                double seconds, double hold_ms) {
  Player first(std::move(balls), board, Player::Side::kFirst, hold_ms);
  first.take_all();
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  peer.push_back(std::to_string(end));
  const Process second(std::move(peer));
  first.play(end);
  Duel duel;
  const std::array<Samples*, 4> kinds{&duel.raw, &duel.ours, &duel.raw_again, &duel.ours};
  for (std::uint64_t i = kWarmUp; i < first.notes().step; ++i) {
    kinds[i % kinds.size()]->add(static_cast<double>(first.notes().samples[i]));
  }
  return duel;
}

void play_along(Balls balls, const std::string& board, const char* end, double hold_ms) {
  Player second(std::move(balls), board, Player::Side::kSecond, hold_ms);
  second.play(std::atoll(end));
}

Row hand_over_row(const char* name, const Duel& pinned, const Duel& unpinned,
                  std::optional<double> target) {
  Row row = row_of(name, pinned, &unpinned, target);
  row.note = "not pinned: ours " + in_us(unpinned.ours) + "; raw " + in_us(unpinned.both_raw());
  return row;
}

}  // namespace simba::bench
