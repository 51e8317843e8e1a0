// simba_torture: attacks a store whose server it starts itself. For a server of yours there is
// `simba torture`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "testing/servers/server.h"
#include "torture/own_servers.h"
#include "torture/torture.h"
#include "torture/worker.h"

namespace simba::torture {
namespace {

constexpr int kUsage = 2, kSkipped = 4;

struct Words {
  std::string store = "sqlite", picture, json;
  std::uint64_t seed = 0;
  long seconds = 10, slack = 3;
  int clients = 4, mutexes = 2;
  bool must_break = false, lists = false;
};

Words parse(CLI::App& app, int argc, char** argv) {
  Words words;
  app.add_option("--store", words.store, "one of" + own_store_names());
  app.add_option("--seconds", words.seconds, "of faults")->check(CLI::Range(1L, 86'400L));
  app.add_option("--slack", words.slack,
                 "seconds: an owner may take so much longer than two leases")
      ->check(CLI::Range(0L, 600L));
  app.add_option("--seed", words.seed, "of the dice; default: any");
  app.add_option("--clients", words.clients, "processes")->check(CLI::Range(2, 64));
  app.add_option("--mutexes", words.mutexes, "that each contends for")->check(CLI::Range(1, 64));
  app.add_option("--picture", words.picture, "an SVG file to write");
  app.add_option("--json", words.json, "a file to write the verdict to, as one object");
  app.add_flag("--must-break", words.must_break,
               "for planted bugs: succeeds as soon as a promise is seen broken");
  app.add_flag("--list", words.lists, "only says which stores there are, one on each line");
  app.parse(argc, argv);
  if (words.seed == 0) words.seed = std::random_device{}() | 1U;
  return words;
}

int list() {
  std::istringstream names(own_store_names());
  for (std::string name; names >> name;) std::cout << name << '\n';
  return 0;
}

int run(const Words& words) {
  if (words.lists) return list();
  const OwnStore* store = own_store(words.store);
  if (store == nullptr) {
    throw CLI::ValidationError("--store",
                               "there is no store '" + words.store + "' here; see --help");
  }
  Plan plan;
  plan.prefix = "torture-";
  plan.clients = words.clients;
  plan.mutexes = words.mutexes;
  plan.ttl = store->ttl;
  plan.transition = store->transition;
  plan.length = std::chrono::seconds{words.seconds};
  plan.slack = std::chrono::seconds{words.slack};
  plan.seed = words.seed;
  const std::string command = "script/torture --store " + words.store + " --seconds " +
                              std::to_string(words.seconds) + " --seed " +
                              std::to_string(words.seed);
  const Report report = torture(store->start(), plan, command,
                                words.must_break ? Attack::Until::kBroken : Attack::Until::kEnd);
  std::cout << report.text;
  if (!words.picture.empty()) std::ofstream(words.picture) << report.picture;
  if (!words.json.empty()) std::ofstream(words.json) << report.json;
  return (words.must_break ? report.is_broken : report.holds) ? 0 : 1;
}

int guarded(int argc, char** argv) {
  CLI::App app("Attacks a store: kills and stops clients, breaks their network, kills the server.");
  try {
    return run(parse(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const servers::Unavailable& reason) {
    std::cout << "skipped: " << reason.what() << '\n';
    return kSkipped;
  } catch (const std::exception& error) {
    std::cerr << "simba_torture: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace simba::torture

int main(int argc, char** argv) {
  simba::torture::work_if_asked(argc, argv);
  return simba::torture::guarded(argc, argv);
}
