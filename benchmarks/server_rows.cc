#include "benchmarks/server_rows.h"

#include <sched.h>

#include <filesystem>

#include "benchmarks/catch.h"

namespace simba::bench {

void add_skipped_row(const char* name, const char* reason, Report& report) {
  Row skipped;
  skipped.name = name;
  skipped.verdict = Verdict::kSkipped;
  skipped.note = reason;
  report.add(skipped);
}

void bring_here(const servers::Server& server) {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  const std::string tasks = "/proc/" + std::to_string(server.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sched_setaffinity(std::stoi(task.path().filename().string()), sizeof mine, &mine);
  }
}

Both measure_both(const servers::Server& server, const Measure& measure, double seconds,
                  double unpinned_seconds) {
  Both both;
  both.unpinned = measure(unpinned_seconds);
  const Pinned pin;
  bring_here(server);
  both.pinned = measure(seconds);
  return both;
}

void add_row(const servers::Server& server, Report& report, const char* name,
             const Measure& measure, double seconds, std::optional<double> target) {
  const Both both = measure_both(server, measure, seconds, seconds / 2);
  report.add(row_of(name, both.pinned, &both.unpinned, target));
}

void add_row_with_wall(const servers::Server& server, Report& report, const char* name,
                       const Measure& measure, const Measure& wall, double seconds, double target) {
  const Both both = measure_both(server, measure, seconds, seconds / 2);
  Row row = row_of(name, both.pinned, &both.unpinned, target);
  const Pinned pin;
  bring_here(server);
  excuse(row, wall(seconds / 2), target);
  report.add(row);
}

void add_hand_over_row(const servers::Server& server, Report& report, const char* name,
                       const std::function<Duel(const std::string& game)>& play,
                       std::optional<double> target) {
  const Duel unpinned = play("catch");
  const Pinned pin;
  bring_here(server);
  report.add(hand_over_row(name, play("catch-pinned"), unpinned, target));
}

}  // namespace simba::bench
