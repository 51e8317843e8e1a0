#include <sys/wait.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/cron.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/leader.h"
#include "cli/output.h"
#include "core/ticks.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// When the runs of one term are due.
class Rhythm {
 public:
  virtual ~Rhythm() = default;
  // From now on; not positive: at once. None: never.
  virtual std::optional<nanoseconds> until_next() = 0;
  // A run has ended. How many were missed meanwhile.
  virtual std::uint64_t ran() = 0;
};

class Periodic : public Rhythm {
 public:
  explicit Periodic(const ScheduleConfig& config) : ticks_(config, BootClock::now()) {}
  std::optional<nanoseconds> until_next() override { return ticks_.next() - BootClock::now(); }
  std::uint64_t ran() override { return ticks_.ran(BootClock::now()); }

 private:
  core::Ticks ticks_;
};

// By the clock on the wall, which people set.
class ByTheClock : public Rhythm {
 public:
  explicit ByTheClock(const Cron& cron) : cron_(cron), next_(cron.next(std::time(nullptr))) {}

  std::optional<nanoseconds> until_next() override {
    if (!next_) return std::nullopt;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return std::chrono::seconds{*next_ - now.tv_sec} - nanoseconds{now.tv_nsec};
  }
  std::uint64_t ran() override {
    const std::time_t now = std::time(nullptr);
    std::uint64_t missed = 0;
    while ((next_ = cron_.next(*next_)) && *next_ < now - now % 60) ++missed;
    return missed;
  }

 private:
  const Cron& cron_;
  std::optional<std::time_t> next_;
};

// How long at most before the clock on the wall is looked at again.
constexpr nanoseconds kLookAgain = 30s;

// One `simba schedule`.
class Schedule {
 public:
  explicit Schedule(const ScheduleCommand& command) : command_(command), leader_(command) {
    if (command.cron) cron_.emplace(*command.cron);
  }

  int run() {
    return leader_.lead([this] { return serve(); });
  }

 private:
  std::optional<int> serve() {
    const std::unique_ptr<Rhythm> rhythm = begin();
    while (wait_for(*rhythm)) {
      const LocalTime began = BootClock::now();
      const Outcome outcome = leader_.run_program();
      if (outcome.end == Outcome::End::kUnguarded) return exit_code::kUnguarded;
      if (outcome.end != Outcome::End::kByItself || leader_.stopped_by() != 0) break;
      tell_failure(outcome);
      const milliseconds took = std::chrono::floor<milliseconds>(BootClock::now() - began);
      if (const std::uint64_t missed = rhythm->ran()) {
        leader_.tell("missed " + std::to_string(missed) + (missed == 1 ? " run" : " runs") +
                     " of '" + printable(command_.mutex) + "': the last one took " +
                     print_duration(took));
      }
    }
    return std::nullopt;
  }

  std::unique_ptr<Rhythm> begin() const {
    if (cron_) return std::make_unique<ByTheClock>(*cron_);
    return std::make_unique<Periodic>(command_.period);
  }

  // False: no longer the leader, or a signal came.
  bool wait_for(Rhythm& rhythm) {
    while (leader_.leads() && leader_.stopped_by() == 0) {
      const auto left = rhythm.until_next();
      if (left && *left <= 0ns) return true;
      leader_.pause(std::min(left.value_or(kLookAgain), kLookAgain));
    }
    return false;
  }

  void tell_failure(const Outcome& outcome) const {
    if (outcome.start_error != 0) {
      leader_.tell("the program cannot be run: " +
                   std::generic_category().message(outcome.start_error));
    } else if (WIFSIGNALED(outcome.status)) {
      leader_.tell("the program was ended by signal " + std::to_string(WTERMSIG(outcome.status)));
    } else if (WEXITSTATUS(outcome.status) != 0) {
      leader_.tell("the program exited with " + std::to_string(WEXITSTATUS(outcome.status)));
    }
  }

  const ScheduleCommand& command_;
  Leader leader_;
  std::optional<Cron> cron_;
};

}  // namespace

int schedule(const ScheduleCommand& command) { return Schedule(command).run(); }

}  // namespace simba::cli
