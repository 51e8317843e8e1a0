#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <stop_token>
#include <string>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/doorbell.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/guardian.h"
#include "cli/leader.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/supervisor.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "cli/waiting.h"
#include "simba/locker.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// What the engine's threads have to say.
class News {
 public:
  int fd() const { return bell_.fd(); }
  void ring() const { bell_.ring(); }
  void note(const Event& event) {
    if (event.kind == Event::Kind::kRenewed) ring();
    if (event.kind == Event::Kind::kCalled) trouble_ = event.error != nullptr;
  }
  bool last_call_failed() const { return trouble_; }
  // The store's trouble is said from now on.
  void speak_up() { speaks_ = true; }
  void tell(LogLevel level, std::string_view line) const {
    if (speaks_ && level != LogLevel::kInfo) say(std::string(line));
  }

 private:
  const Doorbell bell_;
  std::atomic<bool> trouble_{false}, speaks_{false};
};

int tell_not_acquired(Client& client, const RunCommand& command) {
  const std::string holder = who_holds(client, command.mutex);  // throws: the store is away
  const bool waited = command.wait > 0ms;
  if (!command.quiet) {
    say("'" + printable(command.mutex) + "' was not acquired" +
        (waited ? " within " + typed_duration(*command.wait) : "") + ": " + holder);
  }
  return exit_code::kNotAcquired;
}

int tell_lost(const RunCommand& command, const Loss& loss) {
  say("lost '" + printable(command.mutex) + "' while the program ran (" + why_lost(loss) +
      "): the program was ended");
  return exit_code::kLost;
}

int tell(const RunCommand& command, const Outcome& outcome, const Loss& loss) {
  switch (outcome.end) {
    case Outcome::End::kByItself:
      if (outcome.start_error != 0) {
        say(why_not_started(command, outcome.start_error));
        return WEXITSTATUS(outcome.status);
      }
      if (WIFSIGNALED(outcome.status)) return exit_code::kSignalled + WTERMSIG(outcome.status);
      return WEXITSTATUS(outcome.status);
    case Outcome::End::kLost:
      return tell_lost(command, loss);
    case Outcome::End::kHeldTooLong:
      say("the program ran for --max-hold " + typed_duration(command.max_hold) + " and was ended");
      return exit_code::kLost;
    case Outcome::End::kStopped:  // not of this command: its program decides
    case Outcome::End::kUnguarded:
      say("the guardian process was killed or stopped: the program was ended");
      return exit_code::kUnguarded;
  }
  return exit_code::kUnguarded;
}

struct Ended {
  int code = 0;
  int die_by = 0;    // a signal
  bool job = false;  // of the whole job
};

[[noreturn]] void leave(const Ended& ended) {
  if (ended.job) kill(0, ended.die_by);
  if (ended.die_by != 0) die_by(ended.die_by);
  _exit(ended.code);
}

Ended hold_and_watch(const RunCommand& command, SimbaLocker& locker,
                     const Supervisor::Limits& limits, const GuardianHandle& guardian,
                     const Signals& signals, Terminal& terminal, const News& news) {
  const Term term = locker.term();
  const std::stop_callback on_loss(term.lost(), [&] { news.ring(); });
  Supervisor supervisor(guardian, signals, terminal, term, limits);
  const Outcome outcome = supervisor.watch(news.fd());
  const Loss loss = term.loss();
  locker.unlock();
  Ended ended{tell(command, outcome, loss), 0, false};
  if (const int signal = keyboard_signal(outcome, terminal)) {
    ended = {0, signal, terminal.was_given()};
  }
  // The store knows: ending threads and closing files one by one would only take time.
  if (!news.last_call_failed()) leave(ended);
  return ended;
}

Ended contend(const RunCommand& command, const Timing& timing, const GuardianHandle& guardian,
              const Signals& signals, Terminal& terminal) {
  News news;
  ClientOptions options;
  options.contend = command.contend;
  options.on_event = [&news](const Event& event) { news.note(event); };
  options.log = [&news](LogLevel level, std::string_view line) { news.tell(level, line); };
  const bool shows_progress = !command.quiet && is_screen(STDERR_FILENO);
  const bool speaks = !shows_progress;           // that line says it too
  if (speaks && !command.wait) news.speak_up();  // else the last line says it
  Client client = open_client(command.store, options);
  check_id(client, command);
  if (!command.quiet) tell_if_new(client, command.mutex);
  SimbaLocker locker(client, command.mutex, command.contend, command.id);
  const Patience patience{command.wait, shows_progress, command.contend.initial_delay};
  const Waited waited = wait_for_mutex(client, locker, signals, patience);
  if (waited.end == Wait::kTooLong) return {tell_not_acquired(client, command), 0, false};
  if (waited.end == Wait::kInterrupted) return {0, waited.signal, false};
  if (speaks) news.speak_up();
  Supervisor::Limits limits{timing.lease()};
  if (command.max_hold > 0ms) limits.hold_until = BootClock::now() + command.max_hold;
  return hold_and_watch(command, locker, limits, guardian, signals, terminal, news);
}

}  // namespace

int run(const RunCommand& command) {
  const Timing timing = Timing::of(command.contend);
  const nanoseconds to_kill = command.kill_after;
  if (command.max_hold > 0ms && command.max_hold <= to_kill) {
    throw UsageError(
        "--max-hold is " + typed_duration(command.max_hold) +
        ", which leaves the program no time: " + typed_duration(to_kill) +
        " before its end it is asked to stop; make it longer, or --kill-after shorter");
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // should the guardian die, its children become ours
  const Signals signals;
  Terminal terminal;
  // First of all: no thread runs yet, no store is open.
  const GuardianHandle guardian =
      start_guardian({command.program, command.mutex, to_kill, terminal.fd(), command.secrets});
  leave(contend(command, timing, guardian, signals, terminal));
}

}  // namespace simba::cli
