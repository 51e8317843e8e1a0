#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/settings.h"

namespace simba::bench {

// A mutex goes to one of many who wait for it, in two processes: a row for each number of waiters,
// the first of which is what the others are compared with. What one of many pays besides is in
// `note`, asked after its run.
struct Crowd {
  std::string store;  // begins the rows' names
  std::vector<int> waiters;
  std::function<std::string(int waiters)> url;
  double settle_ms = 300;
  std::function<std::string(std::size_t hand_overs)> note;  // may be empty
};
void add_crowd_rows(const Crowd& crowd, const Settings& settings, Report& report);

}  // namespace simba::bench
