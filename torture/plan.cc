#include "torture/plan.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "torture/notebook.h"

namespace simba::torture {
namespace {

// Records of one turn of a client's work: a look, two writes, a look.
constexpr int kPerTurn = 4;

}  // namespace

ContendOptions Plan::options() const {
  ContendOptions options;
  options.ttl = ttl;
  options.transition = transition;
  options.jitter = {-lease() / 32, lease() / 8};  // in proportion, for leases this short
  return options;
}

std::filesystem::path Plan::notebook(int client, int mutex) const {
  return directory / ("notebook-" + std::to_string(client) + '-' + std::to_string(mutex));
}

std::filesystem::path Plan::registers(int mutex) const {
  return directory / ("registers-" + std::to_string(mutex));
}

std::filesystem::path Plan::calls(int client) const {
  return directory / ("calls-" + std::to_string(client));
}

std::filesystem::path Plan::errors(int client) const {
  return directory / ("errors-" + std::to_string(client));
}

std::filesystem::path Plan::pulse(int client) const {
  return directory / ("pulse-" + std::to_string(client));
}

std::filesystem::path Plan::log(int client) const {
  return directory / ("client-" + std::to_string(client) + ".log");
}

nanoseconds Plan::pace() const {
  const auto turns = static_cast<nanoseconds::rep>(Notebook::kCapacity / kPerTurn / 2);
  return std::max<nanoseconds>(look_every, nanoseconds{length} / turns);
}

void Plan::save() const {
  std::ofstream(directory / "plan")
      << prefix << ' ' << clients << ' ' << mutexes << ' ' << ttl.count() << ' '
      << transition.count() << ' ' << length.count() << ' ' << seed << ' ' << look_every.count()
      << ' ' << leaks << '\n';
}

Plan Plan::load(const std::filesystem::path& directory) {
  Plan plan;
  plan.directory = directory;
  milliseconds::rep ttl = 0, transition = 0;
  std::chrono::seconds::rep length = 0;
  nanoseconds::rep look_every = 0;
  std::ifstream file(directory / "plan");
  file >> plan.prefix >> plan.clients >> plan.mutexes >> ttl >> transition >> length >> plan.seed >>
      look_every >> plan.leaks;
  if (!file) throw std::runtime_error("no plan in " + directory.string());
  plan.ttl = milliseconds{ttl};
  plan.transition = milliseconds{transition};
  plan.length = std::chrono::seconds{length};
  plan.look_every = nanoseconds{look_every};
  return plan;
}

}  // namespace simba::torture
