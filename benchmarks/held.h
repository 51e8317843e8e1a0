#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "benchmarks/report.h"
#include "simba/async.h"
#include "simba/client.h"

namespace simba::bench {

// Name of one of many mutexes.
std::string order_name(int i);

// So many mutexes, held until this goes. The constructor returns when all have been granted; a
// mutex that cannot be had ends the program.
class Held {
 public:
  Held(const Client& client, int count);
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::atomic<int> acquired_{0};
  std::mutex guard_;
  std::vector<HeldMutex> all_;  // guarded by guard_
};

struct Renewals {
  std::uint64_t renewed = 0, calls = 0;
  int failed = 0, lost = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // of this process
  double server_seconds = 0;

  bool all_well() const { return failed == 0 && lost == 0; }
  double percent() const { return 100 * cpu_seconds / seconds; }
  double per_call() const { return static_cast<double>(renewed) / static_cast<double>(calls); }
  std::string text() const;
};

// Holds `count` mutexes and looks at their renewals for some seconds, once they have found their
// rhythm.
struct RenewalRun {
  std::string url;
  int count = 0;
  milliseconds ttl{10'000};
  double settle_ms = 8'000, seconds = 14;
  std::function<double()> server_cpu = nullptr;  // seconds so far, where it is asked for
};
Renewals watch_renewals(const RenewalRun& run);

// "... renewal of 10,000, CPU" and "... renewal of 10,000, claims per call".
void add_renewal_rows(const std::string& store, const std::string& url, Report& report,
                      int count = 10'000);
Row cpu_row(std::string name, double percent, double most, bool all_well);
Row batch_row(std::string name, double per_call);

}  // namespace simba::bench
