// simba_simulate: attacks the engine with seeded schedules, or replays one of them.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "testing/simulation.h"

namespace {

using simba::testing::ModelKind;
using simba::testing::SimOptions;
using simba::testing::SimResult;

constexpr const char* kHelp = R"(simba_simulate: the engine under a virtual clock, attacked

  simba_simulate [--kind lease|push|session|forgetful] [--first N] [--seeds N]
      runs that many schedules of 120 simulated seconds; stops at the first broken promise
  simba_simulate [--kind K] --seed N
      replays one schedule with its timeline
  simba_simulate --must-break P1,P1b ...
      turns the verdict round, for an engine with a planted bug: the first promise that is broken
      must be one of these; "crash": the program must die of a signal

Exit status: 0 nothing broken, 1 a promise was broken, 2 usage.
)";

struct Arguments {
  SimOptions options;
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  bool replays = false;
  std::vector<std::string> must_break;

  bool must_crash() const { return must_break == std::vector<std::string>{"crash"}; }
};

// "P1,P1b"; false where one is neither a promise nor a crash.
bool parse_promises(const std::string& text, std::vector<std::string>& promises) {
  static const std::set<std::string> known{"P1", "P1b", "P2", "P4", "P5", "P6", "crash"};
  std::istringstream list(text);
  for (std::string each; std::getline(list, each, ',');) promises.push_back(each);
  return !promises.empty() && std::all_of(promises.begin(), promises.end(),
                                          [](const auto& each) { return known.contains(each); });
}

bool parse_kind(const char* text, ModelKind& kind) {
  for (const ModelKind each :
       {ModelKind::kLease, ModelKind::kPush, ModelKind::kSession, ModelKind::kForgetful}) {
    if (std::strcmp(text, simba::testing::to_string(each)) == 0) {
      kind = each;
      return true;
    }
  }
  return false;
}

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--kind") {
      if (!parse_kind(argv[i + 1], arguments.options.kind)) return false;
      continue;
    }
    if (flag == "--must-break") {
      if (!parse_promises(argv[i + 1], arguments.must_break)) return false;
      continue;
    }
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0') return false;
    if (flag == "--first") {
      arguments.first = number;
    } else if (flag == "--seeds") {
      arguments.seeds = number;
    } else if (flag == "--seed") {
      arguments.first = number;
      arguments.seeds = 1;
      arguments.replays = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

struct Totals {
  std::uint64_t events = 0, calls = 0, terms = 0, crashes = 0, pauses = 0, restarts = 0, cuts = 0;
  simba::nanoseconds longest_gap{};

  void add(const SimResult& result) {
    events += result.events;
    calls += result.calls;
    terms += result.terms;
    crashes += result.crashes;
    pauses += result.pauses;
    restarts += result.restarts;
    cuts += result.cuts;
    longest_gap = std::max(longest_gap, result.longest_gap);
  }
};

int verdict(const Arguments& arguments, const std::string& broken) {
  const auto& expected = arguments.must_break;
  if (expected.empty()) return 1;
  if (std::find(expected.begin(), expected.end(), broken) != expected.end()) return 0;
  std::printf("this bug must break something else\n");
  return 1;
}

int run(const Arguments& arguments) {
  const std::clock_t start = std::clock();  // of this process: others may be busy
  Totals totals;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.seeds; ++seed) {
    const SimResult result = simba::testing::simulate(seed, arguments.options);
    for (const std::string& line : result.timeline) std::printf("%s\n", line.c_str());
    totals.add(result);
    if (!result.violation) continue;
    std::printf("seed %llu breaks %s: %s\n", static_cast<unsigned long long>(seed),
                result.violation->promise.c_str(), result.violation->what.c_str());
    return verdict(arguments, result.violation->promise);
  }
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf(
      "%s: %llu schedules, %.1f simulated hours, %.0f schedules/s of a core, no promise broken\n",
      simba::testing::to_string(arguments.options.kind),
      static_cast<unsigned long long>(arguments.seeds), static_cast<double>(arguments.seeds) / 30.0,
      static_cast<double>(arguments.seeds) / took);
  std::printf(
      "  %llu terms, %llu crashes, %llu pauses, %llu cuts, %llu server restarts, %llu calls, "
      "%llu events, longest gap after the faults %.1f s\n",
      static_cast<unsigned long long>(totals.terms),
      static_cast<unsigned long long>(totals.crashes),
      static_cast<unsigned long long>(totals.pauses), static_cast<unsigned long long>(totals.cuts),
      static_cast<unsigned long long>(totals.restarts),
      static_cast<unsigned long long>(totals.calls), static_cast<unsigned long long>(totals.events),
      std::chrono::duration<double>(totals.longest_gap).count());
  return arguments.must_break.empty() ? 0 : 1;
}

// In a child, so that somebody is left to tell of it.
int expect_crash(const Arguments& arguments) {
  const pid_t child = fork();
  if (child == 0) {
    run(arguments);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return 1;
  std::printf("it dies of signal %d\n", WTERMSIG(status));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  arguments.options.records_timeline = arguments.replays;
  return arguments.must_crash() ? expect_crash(arguments) : run(arguments);
}
