#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace simba::testing {

// Violations found on threads that are not the test's own: what is thrown there would be swallowed
// by whoever called, and the test would pass.
//
// Threads: any.
class Recorder {
 public:
  void report(std::string violation);
  void expect(bool holds, std::string_view violation) {
    if (!holds) report(std::string(violation));
  }
  // Runs `body`; what it throws is a violation.
  void guard(const std::function<void()>& body);

  std::vector<std::string> violations() const;
  // Fails the running test for each, and forgets them. On the test's own thread.
  void check();

 private:
  mutable std::mutex guard_;
  std::vector<std::string> violations_;  // guarded by guard_
};

}  // namespace simba::testing
