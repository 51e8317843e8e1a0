#pragma once

#include <chrono>
#include <thread>

namespace simba::kit {

// For tests: true as soon as `done` is; false when that takes more than five seconds.
template <class Done>
bool eventually(Done done) {
  for (int i = 0; i < 5'000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return done();
}

}  // namespace simba::kit
