#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace simba::testing {

// Every other thread of this process waits for something.
inline bool others_sleep() {
  const std::string own = std::to_string(gettid());
  return std::ranges::all_of(
      std::filesystem::directory_iterator("/proc/self/task"), [&](const auto& thread) {
        if (thread.path().filename() == own) return true;
        std::ifstream file(thread.path() / "stat");
        std::string line;
        std::getline(file, line);  // nothing, of a thread that has ended since
        const std::size_t name_end = line.rfind(')');
        return name_end == std::string::npos || line.compare(name_end, 3, ") S") == 0;
      });
}

// fork() for a child that goes on as this program. The C library's heap is made for that;
// AddressSanitizer's is not: a lock that another thread has at that moment is never free again in
// the child. So its builds wait until no thread runs.
inline pid_t fork_program() {
#ifdef __SANITIZE_ADDRESS__
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!others_sleep() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
#endif
  return fork();
}

}  // namespace simba::testing
