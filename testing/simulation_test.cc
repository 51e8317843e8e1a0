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

// The cell of the matrix that is marked broken: a fail-over that forgets acknowledged writes.
TEST(ForgetfulSimulation, FindsTwoOwnersWhenAFailOverForgetsAcknowledgedWrites) {
  std::uint64_t seed = 1;
  while (seed <= 1000 && !simulate(seed, {ModelKind::kForgetful, false}).violation) ++seed;
  ASSERT_LE(seed, 1000U);
  EXPECT_EQ(simulate(seed, {ModelKind::kForgetful, false}).violation->promise.substr(0, 2), "P1");
}

}  // namespace
}  // namespace simba::testing
