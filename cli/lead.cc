#include <sys/wait.h>

#include <utility>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/leader.h"
#include "cli/output.h"
#include "cli/restart_delay.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// A program that ran this long was well: what fails next is something new.
constexpr nanoseconds kWell = 1min;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return "the program was ended by signal " + std::to_string(WTERMSIG(status));
  return "the program exited with " + std::to_string(WEXITSTATUS(status));
}

int code_of(int status) {
  return WIFSIGNALED(status) ? exit_code::kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

bool is_failure(const Outcome& outcome) { return outcome.status != 0 || outcome.start_error != 0; }

// One `simba lead`.
class Lead {
 public:
  explicit Lead(const LeadCommand& command) : command_(command), leader_(command) {}

  int run() {
    return leader_.lead([this] { return serve(); });
  }

 private:
  // A term: the program runs, and runs again when it fails.
  std::optional<int> serve() {
    failures_ = 0;
    code_.reset();
    while (leader_.stopped_by() == 0 && leader_.leads()) {
      const LocalTime began = BootClock::now();
      const Outcome outcome = leader_.run_program();
      if (outcome.end == Outcome::End::kUnguarded) return exit_code::kUnguarded;
      if (outcome.end != Outcome::End::kByItself || leader_.stopped_by() != 0) break;
      if (BootClock::now() - began >= kWell) failures_ = 0;
      if (!goes_on(outcome)) break;
    }
    return code_;
  }

  // True: to be run again in this term.
  bool goes_on(const Outcome& outcome) {
    const bool failed = is_failure(outcome);
    const std::string what = outcome.start_error != 0
                                 ? why_not_started(command_, outcome.start_error)
                                 : how_it_ended(outcome.status);
    const bool again =
        command_.restart == Restart::kAlways || (command_.restart == Restart::kOnFailure && failed);
    if (!again) {
      if (failed) say(what);
      code_ = code_of(outcome.status);
      return false;
    }
    failures_ = failed ? failures_ + 1 : 0;
    if (command_.hand_over_after > 0 && failures_ >= command_.hand_over_after) {
      say(what + ", " + std::to_string(failures_) + " times in a row: leaves '" + name_ +
          "' to another");
      leader_.give_way_for(command_.contend.ttl);
      return false;
    }
    const milliseconds delay = restart_delay(command_.delay, failures_);
    say(what + ": again in " + print_duration(delay));
    return leader_.pause(delay);
  }

  const LeadCommand& command_;
  Leader leader_;
  const std::string name_ = printable(command_.mutex);
  unsigned failures_ = 0;    // in a row
  std::optional<int> code_;  // its end is ours
};

}  // namespace

int lead(const LeadCommand& command) { return Lead(command).run(); }

}  // namespace simba::cli
