#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testing/sim_world.h"

// The shipping engine under a virtual clock: one 64-bit seed is one schedule of 120 seconds in
// which processes crash and pause, calls are lost, doubled, late and reordered, clocks drift,
// servers restart and hints go astray. After every event the promises are checked; when the faults
// have ended, somebody must own every mutex within the bound.
namespace simba::testing {

struct SimResult {
  std::optional<Violation> violation;
  std::uint64_t events = 0, calls = 0, terms = 0, crashes = 0, pauses = 0, restarts = 0, cuts = 0;
  nanoseconds longest_gap{};  // without an owner, after the faults had ended
  std::vector<std::string> timeline;
};

SimResult simulate(std::uint64_t seed, const SimOptions& options);

}  // namespace simba::testing
