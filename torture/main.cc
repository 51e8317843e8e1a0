// simba_torture: attacks a store whose server it starts itself. For a server of yours there is
// `simba torture`.
#include "torture/program.h"
#include "torture/torture.h"
#include "torture/worker.h"

namespace simba::torture {
namespace {

struct TortureWords : Words {
  long seconds = 10, slack = 3;
  int clients = 4, mutexes = 2;
  std::string must_break;  // "P1"; empty: nothing
};

void add_own_options(CLI::App& app, TortureWords& words) {
  app.add_option("--seconds", words.seconds, "of faults")->check(CLI::Range(1L, 86'400L));
  app.add_option("--slack", words.slack,
                 "seconds: an owner may take so much longer than two leases")
      ->check(CLI::Range(0L, 600L));
  app.add_option("--clients", words.clients, "processes")->check(CLI::Range(2, 64));
  app.add_option("--mutexes", words.mutexes, "that each contends for")->check(CLI::Range(1, 64));
  app.add_option(
         "--must-break", words.must_break,
         "for planted bugs: succeeds as soon as this promise is seen broken; \"end\": when a "
         "client has ended badly; \"error\": when it has met an error without a cause")
      ->check(CLI::IsMember({"P1", "P1b", "P2", "P3", "P4", "R4", "P6", "LIN", "end", "error"}));
}

int run(const TortureWords& words) {
  const OwnStore& store = chosen(words);
  Plan plan;
  plan.prefix = "torture-";
  plan.clients = words.clients;
  plan.mutexes = words.mutexes;
  plan.ttl = store.ttl;
  plan.transition = store.transition;
  plan.length = std::chrono::seconds{words.seconds};
  plan.slack = std::chrono::seconds{words.slack};
  plan.seed = words.seed;
  const std::string command = "script/torture --store " + words.store + " --seconds " +
                              std::to_string(words.seconds) + " --seed " +
                              std::to_string(words.seed);
  const Report report = torture(store.start(), plan, command, words.must_break);
  publish(words, report.text, report.picture, report.json);
  const bool is_right =
      words.must_break.empty() ? report.holds : report.broken.contains(words.must_break);
  return is_right ? 0 : 1;
}

int run(int argc, char** argv) {
  work_if_asked(argc, argv);
  CLI::App app("Attacks a store: kills and stops clients, breaks their network, kills the server.");
  TortureWords words;
  add_options(app, words);
  add_own_options(app, words);
  return guarded(app, words, argc, argv, [&] { return run(words); });
}

}  // namespace
}  // namespace simba::torture

int main(int argc, char** argv) { return simba::torture::run(argc, argv); }
