#include "testing/attack.h"

#include <algorithm>

namespace simba::testing {

std::string to_string(const Finding& finding) {
  std::string text;
  for (const std::string& line : finding.timeline) text += line + "\n";
  return text + "seed " + std::to_string(finding.seed) + " breaks " + finding.violation.promise +
         ": " + finding.violation.what;
}

std::optional<Finding> attack(const Scenario& scenario, Seeds seeds, SimOptions options) {
  options.records_timeline = false;
  for (std::uint64_t seed = seeds.first; seed - seeds.first < seeds.count; ++seed) {
    SimWorld world{seed, options};
    scenario(world);
    if (!world.violation()) continue;
    Finding found{seed, *world.violation(), replay(scenario, seed, options)};
    const bool again = std::any_of(
        found.timeline.begin(), found.timeline.end(),
        [&](const std::string& line) { return line.ends_with(": " + found.violation.what); });
    if (!again) {
      found.timeline.emplace_back(
          "(played again it went otherwise: the scenario depends on more than its seed)");
    }
    return found;
  }
  return std::nullopt;
}

std::vector<std::string> replay(const Scenario& scenario, std::uint64_t seed, SimOptions options) {
  options.records_timeline = true;
  SimWorld world{seed, options};
  scenario(world);
  return world.timeline();
}

}  // namespace simba::testing
