#include "benchmarks/measure.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace simba::bench {

std::int64_t now_ns() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * 1'000'000'000 + ts.tv_nsec;
}

void Samples::add(const Samples& others) {
  values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  sorted_ = false;
}

double Samples::quantile(double share) const {
  if (values_.empty()) return std::nan("");
  if (!sorted_) std::sort(values_.begin(), values_.end());
  sorted_ = true;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values_.size()));
  return values_[std::min(at, values_.size() - 1)];
}

double Samples::mean() const {
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

Samples Duel::both_raw() const {
  Samples both = raw;
  both.add(raw_again);
  return both;
}

Pinned::Pinned() : before_(sizeof(cpu_set_t)) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::memcpy(before_.data(), &allowed, sizeof allowed);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) last = cpu;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  sched_setaffinity(0, sizeof one, &one);
}

Pinned::~Pinned() {
  cpu_set_t before;
  std::memcpy(&before, before_.data(), sizeof before);
  sched_setaffinity(0, sizeof before, &before);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

int threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace simba::bench
