#include "testing/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace simba::testing {
namespace {

class Simulation : public ::testing::TestWithParam<ModelKind> {};

INSTANTIATE_TEST_SUITE_P(Models, Simulation,
                         ::testing::Values(ModelKind::kLease, ModelKind::kPush,
                                           ModelKind::kSession),
                         [](const auto& param) { return std::string(to_string(param.param)); });

// Forgetful: what it breaks is told apart below.
class AnyModel : public ::testing::TestWithParam<ModelKind> {};

INSTANTIATE_TEST_SUITE_P(Models, AnyModel,
                         ::testing::Values(ModelKind::kLease, ModelKind::kPush, ModelKind::kSession,
                                           ModelKind::kForgetful),
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

// The cells of the matrix that are marked broken: two own at once, and nothing else is broken but
// what is excused.
void expect_two_owners(
    const SimOptions& options,
    const std::function<bool(std::uint64_t seed, const Violation&)>& is_excused) {
  std::uint64_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimResult result = simulate(seed, options);
    if (!result.violation) continue;
    const std::string& promise = result.violation->promise;
    const bool two_own = promise == "P1" || promise == "P1b";
    broken += two_own ? 1 : 0;
    EXPECT_TRUE(two_own || is_excused(seed, *result.violation))
        << "seed " << seed << ": " << promise << ' ' << result.violation->what;
  }
  EXPECT_GT(broken, 0U);
}

bool tells(const SimResult& result, const char* what) {
  return std::any_of(result.timeline.begin(), result.timeline.end(),
                     [&](const std::string& line) { return line.find(what) != line.npos; });
}

// Of the last token nothing is left then but the server's time.
bool forgot_with_a_clock_set_back(std::uint64_t seed, const Violation& violation) {
  if (violation.promise != "P2") return false;
  const SimOptions options{.kind = ModelKind::kForgetful, .records_timeline = true};
  const SimResult result = simulate(seed, options);
  return tells(result, "the server's clock is set by -") && tells(result, "fails over and forgets");
}

TEST(ForgetfulSimulation, FindsTwoOwnersWhenAFailOverForgetsAcknowledgedWrites) {
  expect_two_owners({.kind = ModelKind::kForgetful}, forgot_with_a_clock_set_back);
}

// Few schedules come to it before two own at once, which ends them. Without a clock that was set
// back, the larger token is that of a term which overlaps an older one that is told later.
TEST(ForgetfulSimulation, FindsASmallerTokenWhenTheClockGoesBack) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const SimResult result = simulate(seed, {.kind = ModelKind::kForgetful});
    if (result.violation && forgot_with_a_clock_set_back(seed, *result.violation)) return;
  }
  FAIL() << "P2 is broken when the clock goes back, and no schedule shows it";
}

TEST_P(AnyModel, FindsTwoOwnersWhenAnOperatorFreesAtOnce) {
  // Freed while the grant was still on its way, the older of the two is the later to be told.
  const auto is_late_news = [](std::uint64_t, const Violation& violation) {
    return violation.promise == "P2";
  };
  SimOptions options{.kind = GetParam(), .frees_at_once = true};
  expect_two_owners(options, is_late_news);
  options.records_timeline = true;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_FALSE(tells(simulate(seed, options), "fails over")) << "two own, by another cause";
  }
}

}  // namespace
}  // namespace simba::testing
