#pragma once

#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace simba::kit {

// For tests: that thread of this process waits for something.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return all.find(") S ") != all.npos;
}

}  // namespace simba::kit
