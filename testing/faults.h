#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simba/testing/world.h"
#include "simba/time.h"

namespace simba::testing {

// What goes wrong in a simulated world, and until when. The seed decides what happens when, to whom
// and for how long; what is false here never does.
struct FaultPlan {
  World::Time until{std::chrono::seconds{75}};
  // Ttl and transition of your contenders: faults last up to three of these, late messages one.
  nanoseconds lease{std::chrono::seconds{16}};
  // Of which rows are blocked and owners evicted.
  std::vector<std::string> mutexes = {};
  nanoseconds slowest_callback{};  // 0: callbacks are quick

  bool crashes = true;      // and the process boots again
  bool pauses = true;       // of whole processes, also in the middle of a call
  bool cuts = true;         // between one process and the server
  bool restarts = true;     // of the server
  bool clock_steps = true;  // of the server: back, and forward within what the guard pays for
  // Of a forgetful server: the clock of whoever succeeds it is behind, which breaks P2.
  bool successors_are_behind = false;
  bool blocked_rows = true;  // a stranger locks one
  // By an operator; a forgetful server fails over instead, but where operators free at once.
  bool evictions = true;
  bool bad_network = true;  // calls are lost, late, doubled and reordered, hints lost and forged

  // When the faults have ended: every process runs and reaches the server. Here begins what must
  // happen within a bound.
  std::function<void()> then = {};
};

}  // namespace simba::testing
