#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/report.h"
#include "simba/client.h"

namespace simba::bench {

// A mutex that two processes throw to each other.
class Ball {
 public:
  virtual ~Ball() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
};
std::unique_ptr<Ball> our_ball(const Client& client, std::string mutex);

// Two processes hand four balls over to each other, one after the other: raw, ours, raw again,
// ours. A sample is the time from before the release until the other one has it.
using Balls = std::array<std::unique_ptr<Ball>, 4>;

inline constexpr double kHandOverTarget = 0.8;  // 1.25 times the raw wake-up and claim
// How long a ball is held: long enough for the other one to be waiting.
inline constexpr double kHoldMs = 0.5;

// Runs the first process here and the second as `peer`, a program and its arguments to which the
// end is appended. `board` is a file that both map.
Duel play_catch(Balls balls, const std::string& board, std::vector<std::string> peer,
                double seconds, double hold_ms = kHoldMs);
// The second process.
void play_along(Balls balls, const std::string& board, const char* end, double hold_ms = kHoldMs);

Row hand_over_row(const char* name, const Duel& pinned, const Duel& unpinned,
                  std::optional<double> target = kHandOverTarget);

}  // namespace simba::bench
