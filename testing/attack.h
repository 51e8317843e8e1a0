#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simba/testing/sim_world.h"

namespace simba::testing {

// Your processes, your faults and your checks, in a world that has just begun.
using Scenario = std::function<void(SimWorld&)>;

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
};

// The schedule that broke something, to be read and to be replayed.
struct Finding {
  std::uint64_t seed = 0;
  Violation violation;
  std::vector<std::string> timeline;
};
// The timeline, and a last line that says it all.
std::string to_string(const Finding& finding);

// Plays the scenario with one seed after the other until something is broken; that one is played
// again, with its timeline.
std::optional<Finding> attack(const Scenario& scenario, Seeds seeds, SimOptions options = {});
// One seed, with its timeline, whether it breaks anything or not.
std::vector<std::string> replay(const Scenario& scenario, std::uint64_t seed,
                                SimOptions options = {});

}  // namespace simba::testing
