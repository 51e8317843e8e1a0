#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/doorbell.h"
#include "cli/guardian.h"
#include "cli/signals.h"
#include "cli/supervisor.h"
#include "cli/terminal.h"
#include "simba/client.h"
#include "simba/locker.h"
#include "simba/options.h"

namespace simba::cli {

// Throws UsageError that names where the id comes from, if the store cannot hold it.
void check_id(Client& client, const Duty& duty);

// Why a program could not be started, and why it had to be ended, for a person.
std::string why_not_started(const Duty& duty, int error);
std::string why_lost(const Loss& loss);

// Leads again and again, and runs a program under guard any number of times in each term.
//
// Threads: one.
class Leader {
 public:
  explicit Leader(const Duty& duty);
  ~Leader();

  // Calls `serve` in each term, until it returns an exit code; the mutex is released in between. A
  // signal ends this process.
  int lead(const std::function<std::optional<int>()>& serve);

  // --- within a term ---

  Outcome run_program();
  // True when the time has come and the mutex is still ours; else a signal came, or it was lost.
  bool pause(nanoseconds span);
  // After this term, others have that long to take it.
  void give_way_for(nanoseconds span) { rest_ = span; }

  bool leads() const { return locker_->is_owner(); }
  // False while a renewal is late: what begins now might have to be ended at once.
  bool may_begin() const { return locker_->is_in_ttl(); }
  // The signal that ends all, or 0.
  int stopped_by() const { return stopped_by_; }

 private:
  // False when a signal came first.
  bool acquire();
  // How it goes on: "simba: ..." unless the user wants quiet. Errors are said, whatever he wants.
  void tell(const std::string& line) const;
  void rest();
  void wait(LocalTime until, nanoseconds longest);

  const Duty& duty_;
  const Timing timing_;
  const Signals signals_;
  Terminal terminal_;
  const Doorbell news_;  // renewed, or lost
  std::optional<Client> client_;
  std::optional<SimbaLocker> locker_;
  milliseconds initial_delay_;  // before the first claim of all
  int stopped_by_ = 0;
  std::atomic<bool> shows_progress_{false};  // that line says what the store's trouble is
  bool was_ended_ = false;                   // the program, because the mutex was lost
  nanoseconds rest_{};                       // before it contends again
};

}  // namespace simba::cli
