#include "torture/sampler.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace simba::torture {
namespace {

namespace fs = std::filesystem;

// What one thing may grow by. An allocator keeps what it once needed, a pool of threads grows when
// a store hangs, files are opened when they are first needed: all of it ends, which a leak does
// not.
constexpr double kShare = 0.1;
constexpr double kHeapKib = 512, kMemoryKib = 2'048, kThreads = 8, kDescriptors = 16;

// "Threads:	12" and "RssAnon:	 1234 kB" of /proc/PID/status; -1: the process is gone.
double field(const fs::path& process, const std::string& name) {
  std::ifstream file(process / "status");
  for (std::string word; file >> word;) {
    double value = 0;
    if (word == name + ':' && file >> value) return value;
  }
  return -1;
}

double descriptors(const fs::path& process) {
  std::error_code gone;
  double count = 0;
  for (fs::directory_iterator it(process / "fd", gone), end; !gone && it != end; it.increment(gone))
    ++count;
  return gone ? -1 : count;
}

}  // namespace

Sampler::Sampler(const Plan& plan, const Target& target) : target_(target) {
  for (int client = 0; client < plan.survivors; ++client) pulses_.emplace_back(plan.pulse(client));
}

void Sampler::sample(const Crowd& crowd) {
  const LocalTime now = BootClock::now();
  for (int client = 0; client < static_cast<int>(pulses_.size()); ++client) {
    sample_client(client, crowd.pid(client), now);
  }
  // A server that is down would keep us waiting, and with us whoever is to start it again.
  if (!target_.count || (target_.server && !target_.server->is_ready())) return;
  for (const Count& count : target_.count()) {
    add({count.name, "", -1, count.share, count.constant, {}}, now, count.value);
  }
}

void Sampler::sample_client(int client, pid_t pid, LocalTime now) {
  const fs::path process = fs::path("/proc") / std::to_string(pid);
  const auto heap =
      static_cast<double>(pulses_.at(static_cast<std::size_t>(client)).heap()) / 1'024;
  if (heap > 0) add({"heap", "KiB", client, kShare, kHeapKib, {}}, now, heap);
  add({"memory", "KiB", client, kShare, kMemoryKib, {}}, now, field(process, "RssAnon"));
  add({"threads", "", client, kShare, kThreads, {}}, now, field(process, "Threads"));
  add({"descriptors", "", client, kShare, kDescriptors, {}}, now, descriptors(process));
}

// A series without a value is one all the same: that it was never told is seen.
void Sampler::add(Series about, LocalTime now, std::optional<double> value) {
  auto found = std::find_if(series_.begin(), series_.end(), [&](const Series& each) {
    return each.name == about.name && each.client == about.client;
  });
  if (found == series_.end()) found = series_.insert(series_.end(), std::move(about));
  if (value && *value >= 0) found->points.push_back({now, *value});
}

std::vector<Series> Sampler::series() const {
  std::vector<Series> all = series_;
  std::stable_sort(all.begin(), all.end(), [](const Series& a, const Series& b) {
    return std::pair(a.client < 0, a.name) < std::pair(b.client < 0, b.name);
  });
  return all;
}

}  // namespace simba::torture
