#pragma once

#include <optional>
#include <string>

#include "benchmarks/measure.h"

namespace simba::bench {

enum class Verdict {
  kFigure,  // no target: for information
  kMet,
  kMissed,
  kVoid,     // says nothing: the raw loop differed from itself, or cannot reach the target either
  kSkipped,  // what it measures is not there
};

// One line of the report.
struct Row {
  std::string name;  // what --filter looks at
  std::string unit = "us";
  std::optional<double> ours, ours_p99, raw, raw_p99;
  // Of the speeds, by medians and by totals: 1 is as fast as the raw driver.
  std::optional<double> ratio, ratio_of_totals, unpinned_ratio;
  std::optional<double> a_to_a;
  std::string target;
  Verdict verdict = Verdict::kFigure;
  std::string note;  // a second line
};

// A row from two loops that took turns. `scale` nanoseconds make one unit; at least this share of
// the raw speed is wanted.
Row row_of(std::string name, const Duel& pinned, const Duel* unpinned, std::optional<double> target,
           double scale = 1'000);

// A target that was missed says nothing where `wall`, the raw driver doing what the store does,
// does not reach it either. A wall that differs from itself excuses nothing.
void excuse(Row& row, const Duel& wall, double target);

std::string fixed(double value, int digits);

// Threads: one.
class Report {
 public:
  enum class Format { kTable, kJson };
  explicit Report(Format format) : format_(format) {}

  void add(const Row& row);
  // False: a target was missed.
  bool all_met() const { return !missed_; }

 private:
  void print_header();
  static void print_line(const Row& row);
  static void print_json(const Row& row);

  const Format format_;
  bool has_header_ = false;
  bool missed_ = false;
};

}  // namespace simba::bench
