#include "benchmarks/report.h"

#include <gtest/gtest.h>

namespace simba::bench {
namespace {

// Each operation takes so many nanoseconds.
Duel duel_of(double raw, double raw_again, double ours) {
  Duel duel;
  duel.raw.add(raw);
  duel.raw_again.add(raw_again);
  duel.ours.add(ours);
  return duel;
}

Verdict verdict_of(const Duel& duel) { return row_of("row", duel, nullptr, 0.9).verdict; }

TEST(ReportTest, ATargetIsMetOrMissedByTheRatio) {
  EXPECT_EQ(verdict_of(duel_of(100, 100, 100)), Verdict::kMet);
  EXPECT_EQ(verdict_of(duel_of(100, 100, 200)), Verdict::kMissed);
  EXPECT_EQ(row_of("row", duel_of(100, 100, 200), nullptr, {}).verdict, Verdict::kFigure);
}

TEST(ReportTest, ALoopThatDiffersFromItselfSaysNothing) {
  EXPECT_EQ(verdict_of(duel_of(102, 100, 100)), Verdict::kVoid);
  EXPECT_EQ(verdict_of(duel_of(100, 102, 200)), Verdict::kVoid);
  EXPECT_EQ(verdict_of(Duel{}), Verdict::kVoid) << "nor one that did not run";
  EXPECT_EQ(verdict_of(duel_of(100.9, 100, 100)), Verdict::kMet);
}

TEST(ReportTest, ADriverThatDoesNotReachTheTargetEitherExcusesAMiss) {
  const auto excused_by = [](const Duel& wall) {
    Row row = row_of("row", duel_of(100, 100, 200), nullptr, 0.9);
    excuse(row, wall, 0.9);
    return row.verdict == Verdict::kVoid;
  };
  EXPECT_TRUE(excused_by(duel_of(100, 100, 200)));
  EXPECT_FALSE(excused_by(duel_of(100, 100, 105)));
  EXPECT_FALSE(excused_by(duel_of(100, 110, 200))) << "it differs from itself";
}

}  // namespace
}  // namespace simba::bench
