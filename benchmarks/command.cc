// What the tool adds to a program that does nothing, beside what flock(1) adds.
#include <algorithm>
#include <filesystem>

#include "benchmarks/processes.h"
#include "benchmarks/settings.h"

namespace simba::bench {
namespace {

constexpr double kTarget = 2;
constexpr int kRuns = 200;

#ifdef SIMBA_TOOL
struct Costs {
  Samples plain, flock, ours;

  double above_plain() const { return ours.median() - plain.median(); }
  double flock_above_plain() const { return flock.median() - plain.median(); }
  double times() const { return above_plain() / flock_above_plain(); }
  double whole_times() const { return ours.median() / flock.median(); }
};

// As it is installed, that is a copy: what the linker wrote in small pieces is slower to load.
std::string install_tool(const Settings& settings) {
  std::string copy = settings.file("simba");
  std::filesystem::copy_file(SIMBA_TOOL, copy, std::filesystem::copy_options::overwrite_existing);
  return copy;
}

double time_to_run(const std::vector<std::string>& words) {
  const std::int64_t begin = now_ns();
  Process process(words);
  if (process.wait() != 0) return 0;
  return static_cast<double>(now_ns() - begin);
}

Costs run_all(const Settings& settings, const std::string& tool) {
  const std::vector<std::string> plain{"true"};
  const std::vector<std::string> flock{"flock", settings.file("flock"), "true"};
  const std::vector<std::string> ours{tool, "run", "--store", settings.url("tool.db"),
                                      "x",  "--",  "true"};
  Costs costs;
  for (int i = 0; i < kRuns; ++i) {
    costs.plain.add(time_to_run(plain));
    costs.flock.add(time_to_run(flock));
    costs.ours.add(time_to_run(ours));
  }
  return costs;
}
#endif

}  // namespace

void command(const Settings& settings, Report& report) {
  Row row;
  row.name = "simba run x -- true";
  row.target = "<= 2 x flock";
#ifdef SIMBA_TOOL
  const std::string tool = install_tool(settings);
  const Costs free = run_all(settings, tool);
  const Pinned pin;
  const Costs costs = run_all(settings, tool);
  row.ours = costs.above_plain() / 1e3;
  row.ours_p99 = (costs.ours.quantile(0.99) - costs.plain.median()) / 1e3;
  row.raw = costs.flock_above_plain() / 1e3;
  row.raw_p99 = (costs.flock.quantile(0.99) - costs.plain.median()) / 1e3;
  row.ratio = 1 / costs.times();
  row.unpinned_ratio = 1 / free.times();
  // The worse of the two is what somebody will see.
  const double times = std::max(costs.times(), free.times());
  row.verdict = times <= kTarget ? Verdict::kMet : Verdict::kMissed;
  row.note = "above plain true (" + fixed(costs.plain.median() / 1e3, 0) +
             " us); raw is flock: " + fixed(costs.times(), 2) + " times it, with true " +
             fixed(costs.whole_times(), 2) + "; not pinned " + fixed(free.above_plain() / 1e3, 0) +
             " us, " + fixed(free.times(), 2) + " times, with true " + fixed(free.whole_times(), 2);
#else
  row.verdict = Verdict::kSkipped;
  row.note = "the tool is not built here";
  static_cast<void>(settings), static_cast<void>(kTarget), static_cast<void>(kRuns);
#endif
  report.add(row);
}

}  // namespace simba::bench
