#pragma once

#include <vector>

#include "torture/crowd.h"
#include "torture/outcome.h"
#include "torture/plan.h"

namespace simba::torture {

// Stops a client between its look at its lease and the write that follows, and lets it go on when a
// newer owner has written: the case that no lease protects from, and a fence does.
//
//   lay()      whoever owns the mutex, now or next, is to wait before its next write
//   step()     it does: SIGSTOP; later, superseded or after three leases: SIGCONT
//
// Threads: one.
class Ambush {
 public:
  // Whom it stops it marks in `is_struck`; what it does it adds to `faults`.
  Ambush(const Plan& plan, Crowd& crowd, std::vector<bool>& is_struck, std::vector<Fault>& faults);

  bool is_laid() const { return stage_ != Stage::kNone; }
  void lay(int mutex);
  void step();
  void end();

 private:
  enum class Stage { kNone, kWaiting, kStopped };

  void spring();
  void stop(int client);

  const Plan& plan_;
  Crowd& crowd_;
  std::vector<bool>& is_struck_;
  std::vector<Fault>& faults_;
  std::vector<Registers> registers_;
  Stage stage_ = Stage::kNone;
  int mutex_ = 0, victim_ = -1;
  Token token_ = 0;  // of the victim
  LocalTime until_{};
  std::size_t fault_ = 0;
};

}  // namespace simba::torture
