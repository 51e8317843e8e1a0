#pragma once

#include <cstdint>

#include "simba/time.h"

namespace simba::testing {

// Random numbers of one schedule: the same seed, the same numbers, on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // At least 0, less than n.
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
  nanoseconds between(nanoseconds from, nanoseconds to) {
    const auto range = static_cast<std::uint64_t>((to - from).count());
    return from + nanoseconds{static_cast<nanoseconds::rep>(below(range))};
  }
  double between(double from, double to) {
    return from + (to - from) * static_cast<double>(next() >> 11) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace simba::testing
