#include "testing/simulation.h"

#include <gtest/gtest.h>

namespace simba::testing {
namespace {

class Simulation : public ::testing::TestWithParam<ModelKind> {};

INSTANTIATE_TEST_SUITE_P(Models, Simulation,
                         ::testing::Values(ModelKind::kLease, ModelKind::kPush,
                                           ModelKind::kSession),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST_P(Simulation, KeepsEveryPromiseThroughAThousandSchedules) {
  std::uint64_t terms = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimResult result = simulate(seed, {GetParam(), false});
    ASSERT_FALSE(result.violation) << "seed " << seed << " breaks " << result.violation->promise
                                   << ": " << result.violation->what;
    terms += result.terms;
  }
  EXPECT_GT(terms, 4000U) << "the schedules must be alive to prove anything";
}

TEST_P(Simulation, ReplaysTheSameScheduleFromTheSameSeed) {
  const SimResult first = simulate(7, {GetParam(), true});
  const SimResult second = simulate(7, {GetParam(), true});
  EXPECT_EQ(first.timeline, second.timeline);
  EXPECT_EQ(first.events, second.events);
}

// The cells of the matrix that are marked broken: two own at once, and nothing else is broken.
void expect_two_owners(const SimOptions& options) {
  std::uint64_t broken = 0;
  // Freed or forgotten while the grant was still on its way, the older of the two is the later to
  // be told.
  const char* const late_news = "P2";
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimResult result = simulate(seed, options);
    if (!result.violation) continue;
    ++broken;
    const std::string promise = result.violation->promise.substr(0, 2);
    EXPECT_TRUE(promise == "P1" || promise == late_news)
        << "seed " << seed << ": " << result.violation->promise << ' ' << result.violation->what;
  }
  EXPECT_GT(broken, 0U);
}

TEST(ForgetfulSimulation, FindsTwoOwnersWhenAFailOverForgetsAcknowledgedWrites) {
  expect_two_owners({.kind = ModelKind::kForgetful});
}

TEST_P(Simulation, FindsTwoOwnersWhenAnOperatorFreesAtOnce) {
  expect_two_owners({.kind = GetParam(), .frees_at_once = true});
}

}  // namespace
}  // namespace simba::testing
