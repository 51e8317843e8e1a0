#pragma once

#include <mutex>
#include <thread>
#include <vector>

#include "torture/outcome.h"

namespace simba::torture {

// Sleeps a little again and again, and notes down when it was woken far too late: a machine that
// stands still says nothing about how long others take.
//
// Threads: any.
class Heartbeat {
 public:
  Heartbeat();

  std::vector<Stall> stalls() const;

 private:
  void beat(const std::stop_token& stop);

  mutable std::mutex guard_;
  std::vector<Stall> stalls_;  // guarded by guard_
  std::jthread thread_;
};

}  // namespace simba::torture
