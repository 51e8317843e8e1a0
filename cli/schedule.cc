#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "cli/commands.h"
#include "cli/cron_rhythm.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/leader.h"
#include "cli/output.h"
#include "core/ticks.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// When runs are due.
class Rhythm {
 public:
  virtual ~Rhythm() = default;
  // A term begins. How many came since the last one, or since this process began.
  virtual std::uint64_t begin() = 0;
  // From now on; not positive: at once. None: never.
  virtual std::optional<nanoseconds> until_next() = 0;
  // A run has ended. How many were missed meanwhile.
  virtual std::uint64_t ran() = 0;
};

// Counted from when a term begins.
class Periodic : public Rhythm {
 public:
  explicit Periodic(const ScheduleConfig& config) : config_(config) {}
  std::uint64_t begin() override {
    ticks_.emplace(config_, BootClock::now());
    return 0;
  }
  std::optional<nanoseconds> until_next() override { return ticks_->next() - BootClock::now(); }
  std::uint64_t ran() override { return ticks_->ran(BootClock::now()); }

 private:
  const ScheduleConfig config_;
  std::optional<core::Ticks> ticks_;
};

class ByTheClock : public Rhythm {
 public:
  explicit ByTheClock(const std::string& cron) : rhythm_(Cron(cron), now()) {}
  std::uint64_t begin() override { return rhythm_.skip(now()); }
  std::optional<nanoseconds> until_next() override { return rhythm_.until_next(now()); }
  std::uint64_t ran() override { return rhythm_.ran(now()); }

 private:
  static CronRhythm::WallTime now() { return std::chrono::system_clock::now(); }

  CronRhythm rhythm_;
};

std::unique_ptr<Rhythm> rhythm_of(const ScheduleCommand& command) {
  if (command.cron) return std::make_unique<ByTheClock>(*command.cron);
  return std::make_unique<Periodic>(command.period);
}

// How long at most before the clock on the wall is looked at again.
constexpr nanoseconds kLookAgain = 30s;
// And whether a renewal that is late has come.
constexpr nanoseconds kLateRenewal = 20ms;

// One `simba schedule`.
class Schedule {
 public:
  explicit Schedule(const ScheduleCommand& command)
      : command_(command), rhythm_(rhythm_of(command)), leader_(command) {}

  int run() {
    return leader_.lead([this] { return serve(); });
  }

 private:
  std::optional<int> serve() {
    if (const std::uint64_t passed = rhythm_->begin()) {
      say(runs(passed) + (passed == 1 ? " was" : " were") +
          " due while this process did not lead: missed, unless another leader ran " +
          (passed == 1 ? "it" : "them"));
    }
    while (wait()) {
      const LocalTime began = BootClock::now();
      const Outcome outcome = leader_.run_program();
      if (outcome.end == Outcome::End::kUnguarded) return exit_code::kUnguarded;
      if (leader_.stopped_by() != 0) break;
      if (outcome.end == Outcome::End::kByItself) tell_failure(outcome);
      const milliseconds took = std::chrono::floor<milliseconds>(BootClock::now() - began);
      if (const std::uint64_t missed = rhythm_->ran()) {
        say("missed " + runs(missed) + ": the last one took " + print_duration(took));
      }
      if (outcome.end != Outcome::End::kByItself) break;
    }
    return std::nullopt;
  }

  // "3 runs of 'report'"
  std::string runs(std::uint64_t count) const {
    return std::to_string(count) +
           (command_.cron && count == CronRhythm::kMostCounted ? " or more" : "") +
           (count == 1 ? " run" : " runs") + " of '" + printable(command_.mutex) + "'";
  }

  // False: no longer the leader, or a signal came.
  bool wait() {
    while (leader_.leads() && leader_.stopped_by() == 0) {
      const auto left = rhythm_->until_next();
      const bool is_due = left && *left <= 0ns;
      if (is_due && leader_.may_begin()) return true;
      leader_.pause(is_due ? kLateRenewal : std::min(left.value_or(kLookAgain), kLookAgain));
    }
    return false;
  }

  void tell_failure(const Outcome& outcome) const {
    if (outcome.start_error != 0) {
      say(why_not_started(command_, outcome.start_error));
    } else if (WIFSIGNALED(outcome.status)) {
      say("the program was ended by signal " + std::to_string(WTERMSIG(outcome.status)));
    } else if (WEXITSTATUS(outcome.status) != 0) {
      say("the program exited with " + std::to_string(WEXITSTATUS(outcome.status)));
    }
  }

  const ScheduleCommand& command_;
  const std::unique_ptr<Rhythm> rhythm_;
  Leader leader_;
};

}  // namespace

int schedule(const ScheduleCommand& command) { return Schedule(command).run(); }

}  // namespace simba::cli
