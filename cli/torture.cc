#include "torture/torture.h"

#include <fstream>
#include <random>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/secrets.h"
#include "cli/settings.h"
#include "cli/usage.h"
#include "simba/connect.h"
#include "torture/worker.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds kShortest = 1s, kLongest = 24h;

std::string again(const TortureCommand& command, std::uint64_t seed) {
  return "simba torture --for " + typed_duration(command.length) + " --clients " +
         std::to_string(command.clients) + " --mutexes " + std::to_string(command.mutexes) +
         " --ttl " + typed_duration(command.ttl) + " --transition " +
         typed_duration(command.transition) + " --seed " + std::to_string(seed);
}

torture::Plan plan_of(const TortureCommand& command) {
  if (command.length < kShortest || command.length > kLongest) {
    throw UsageError("--for is '" + typed_duration(command.length) + "'; it can be from 1s to 1d");
  }
  torture::Plan plan;
  plan.seed = command.seed != 0 ? command.seed : std::random_device{}() | 1U;
  plan.prefix = "simba-torture-" + std::to_string(plan.seed) + '-';
  plan.clients = command.clients;
  plan.mutexes = command.mutexes;
  plan.ttl = command.ttl;
  plan.transition = command.transition;
  plan.length = std::chrono::ceil<std::chrono::seconds>(command.length);
  return plan;
}

// What is wrong is said before anybody is attacked.
void try_store(const TortureCommand& command, const torture::Plan& plan) {
  if (command.store.value.starts_with("memory:")) {
    throw UsageError("memory: lives in one process; torture needs a store that many share");
  }
  static_cast<void>(Timing::of(plan.options()));
  open_client(command.store).observe(plan.mutex(0));
}

}  // namespace

int torture(const TortureCommand& command) {
  const torture::Plan plan = plan_of(command);
  try_store(command, plan);
  torture::Target target = torture::target_of(command.store.value);
  target.name = without_password(command.store.value);
  std::ofstream picture;
  if (!command.picture.empty()) {
    picture.open(command.picture);
    if (!picture) throw UsageError("--picture: '" + command.picture + "' cannot be written");
  }
  const torture::Report report = torture::torture(target, plan, again(command, plan.seed));
  picture << report.picture;
  const bool written = print(command.format == Format::kJson ? report.json : report.text);
  if (!written) return exit_code::kUnavailable;
  return report.holds ? exit_code::kOk : exit_code::kBroken;
}

void contend_if_asked(int argc, char** argv) { torture::work_if_asked(argc, argv); }

}  // namespace simba::cli
