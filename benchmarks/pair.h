#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "benchmarks/measure.h"

// One thread, a free mutex: lock and unlock.
namespace simba::bench {

inline constexpr const char* kMutex = "nightly-report";
// As long as a wire id of ours.
inline constexpr const char* kOwner = "0:12345@some-host~0123456789abc";
inline constexpr double kPairTarget = 0.92;

// What does not hold ends the program: there is nothing to measure then.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simba_bench: %s\n", what);
  std::exit(2);
}

// The pair of a raw driver whose take() returns a token, or 0.
template <class Raw>
struct RawPair {
  Raw db;
  void operator()() {
    const auto token = db.take(kMutex, kOwner);
    expect(token != 0 && db.release(kMutex, kOwner, token), "the raw loop did not get the mutex");
  }
};

using Operation = std::function<void()>;
// Both raw loops take turns with a locker; `repeat` as in duel().
Duel locker_against(const std::string& url, const Operation& raw, const Operation& raw_again,
                    double seconds, int repeat = 1);

}  // namespace simba::bench
