#include "testing/contract_recorder.h"

#include <gtest/gtest.h>

#include <exception>
#include <utility>

namespace simba::testing {

void Recorder::report(std::string violation) {
  const std::lock_guard lock(guard_);
  violations_.push_back(std::move(violation));
}

void Recorder::guard(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    report(std::string("an exception on another thread: ") + error.what());
  } catch (...) {
    report("an exception on another thread");
  }
}

std::vector<std::string> Recorder::violations() const {
  const std::lock_guard lock(guard_);
  return violations_;
}

void Recorder::check() {
  std::vector<std::string> found;
  {
    const std::lock_guard lock(guard_);
    found.swap(violations_);
  }
  for (const std::string& violation : found) ADD_FAILURE() << violation;
}

}  // namespace simba::testing
