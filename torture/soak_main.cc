// simba_soak: many contenders on a store for a long time, on a server that it starts itself. Does
// anything grow?
#include <algorithm>

#include "torture/program.h"
#include "torture/soak.h"
#include "torture/svg.h"
#include "torture/worker.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

struct SoakWords : Words {
  long seconds = 3'600;
  int clients = 10, mutexes = 100;
  double rest = 1.25;
  bool must_leak = false;
};

void add_own_options(CLI::App& app, SoakWords& words) {
  app.add_option("--seconds", words.seconds, "of faults")->check(CLI::Range(10L, 86'400L));
  app.add_option("--clients", words.clients,
                 "processes, each with a contender for every mutex; half of them are never killed")
      ->check(CLI::Range(2, 64));
  app.add_option("--mutexes", words.mutexes)->check(CLI::Range(1, 1'000));
  app.add_option("--rest", words.rest,
                 "leases between two faults, on average; many show what a fault mends")
      ->check(CLI::Range(0.1, 1e6));
  app.add_flag("--must-leak", words.must_leak,
               "plants leaks of all kinds in a client; succeeds when each is seen");
}

// The clock of a server that is off waits by the true one all the same: what is small for a minute
// adds up in an hour, until the server does nothing else than wait, or not at all.
Target start(const OwnStore& store) {
  Target target = store.start();
  if (target.step_clock) target.spared.emplace_back("the clock: its steps would add up");
  target.step_clock = {};
  return target;
}

Plan plan_of(const SoakWords& words, const OwnStore& store) {
  Plan plan;
  plan.prefix = "soak-";
  plan.clients = words.clients;
  plan.mutexes = words.mutexes;
  plan.survivors = words.clients / 2;
  // A crowd needs longer leases than a few clients do, and fewer faults.
  const int longer = words.clients * words.mutexes >= 500 ? 2 : 1;
  plan.ttl = longer * store.ttl;
  plan.transition = longer * store.transition;
  plan.least_rest = 0.4 * words.rest;
  plan.most_rest = 1.6 * words.rest;
  plan.look_every = 500ms;
  plan.length = std::chrono::seconds{words.seconds};
  plan.slack = 30s;
  plan.seed = words.seed;
  plan.leaks = words.must_leak;
  return plan;
}

bool sees_all_leaks(const SoakReport& report) {
  const auto grows = [&](const char* name) {
    return std::find(report.grown.begin(), report.grown.end(), name) != report.grown.end();
  };
  return grows("heap") && grows("descriptors") && grows("threads") && grows("rows");
}

std::string more(const SoakWords& words) {
  const SoakWords usual;
  std::string text;
  if (words.clients != usual.clients) text += " --clients " + std::to_string(words.clients);
  if (words.mutexes != usual.mutexes) text += " --mutexes " + std::to_string(words.mutexes);
  if (words.rest != usual.rest) text += " --rest " + number(words.rest);
  return text + (words.must_leak ? " --must-leak" : "");
}

int run(const SoakWords& words) {
  const OwnStore& store = chosen(words);
  const std::string command = "script/soak --store " + words.store + " --seconds " +
                              std::to_string(words.seconds) + " --seed " +
                              std::to_string(words.seed) + more(words);
  const SoakReport report = soak(start(store), plan_of(words, store), command);
  publish(words, report.text, report.picture, report.json);
  return (words.must_leak ? sees_all_leaks(report) : report.is_flat && report.holds) ? 0 : 1;
}

}  // namespace
}  // namespace simba::torture

int main(int argc, char** argv) {
  simba::torture::work_if_asked(argc, argv);
  CLI::App app("Many contenders for a long time, with faults: does memory or anything else grow?");
  simba::torture::SoakWords words;
  simba::torture::add_options(app, words);
  simba::torture::add_own_options(app, words);
  return simba::torture::guarded(app, words, argc, argv,
                                 [&] { return simba::torture::run(words); });
}
