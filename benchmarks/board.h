#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>

#include "benchmarks/measure.h"

namespace simba::bench {

// What the processes of one benchmark tell each other: memory they share.
struct Notes {
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> end{0};  // there are no steps from this one on; 0: not decided yet
  std::atomic<std::int64_t> released_at{0};
  std::atomic<std::uint32_t> ready{0};
  std::atomic<bool> go{false}, stop{false};
  std::atomic<std::int64_t> holder{0};  // 0: nobody yet
  std::array<std::atomic<std::uint64_t>, 2> taken{};
  // Sample i is the time of hand-over i, in nanoseconds.
  std::array<std::atomic<std::int64_t>, 65'536> samples{};
  std::array<std::atomic<double>, 8> figures{};

  void add_sample(std::int64_t ns) {
    samples[step.load() % samples.size()] = ns;
    step.fetch_add(1);
  }
};

// Maps the notes; makes the file where it is missing. Trouble ends the program.
class Board {
 public:
  explicit Board(const std::string& file);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  Notes* operator->() const { return notes_; }
  Notes& operator*() const { return *notes_; }

 private:
  Notes* notes_;
};

// Naps until `done()`.
template <class Done>
void wait_until(Done done) {
  while (!done()) {
    const timespec nap{0, 100'000};
    nanosleep(&nap, nullptr);
  }
}

inline void nap_ms(double ms) {
  const timespec nap{static_cast<time_t>(ms / 1e3), static_cast<long>(ms * 1e6) % 1'000'000'000};
  nanosleep(&nap, nullptr);
}

}  // namespace simba::bench
