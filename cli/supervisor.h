#pragma once

#include <optional>

#include "cli/guardian.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "simba/term.h"
#include "simba/time.h"

namespace simba::cli {

struct Outcome {
  enum class End {
    kByItself,     // the program's own doing
    kLost,         // ownership was over before the program was
    kHeldTooLong,  // --max-hold
    kUnguarded,    // the guardian was killed or does not answer
    kStopped,      // a signal to us ended it
  };
  End end{};
  int status = 0;       // kByItself: the program's wait status
  int signal = 0;       // kStopped
  int start_error = 0;  // errno of a program that could not be run
  int passed_on = 0;    // the last signal to us that the program got
};

// The signal by which the keyboard ended the program, or 0: whoever waits for us, as a script with
// a loop, has to see that it was one. ^C on a terminal that the program had for itself did not
// reach the rest of the job, and was meant for all of it.
int keyboard_signal(const Outcome& outcome, const Terminal& terminal);

// What `simba run` does while it owns the mutex: has the guardian run the program, tells it each
// new deadline, passes signals on, plays the job control of a shell, and ends everything itself
// when the guardian fails. When watch() returns, nothing that the program started is left.
//
// Threads: one.
class Supervisor {
 public:
  // What a signal to `simba` means that ends programs which do not handle it.
  enum class OnSignal {
    kForwards,  // the program decides
    kEnds,      // it is over: TERM, and KILL after the time to kill
  };
  // `simba`'s own input and output while the program runs.
  enum class Streams {
    kLetGo,  // so that others see when the program has closed them
    kKept,   // for the next program
  };
  struct Limits {
    nanoseconds lease{};
    LocalTime hold_until = LocalTime::max();  // --max-hold
    OnSignal signals = OnSignal::kForwards;
    Streams streams = Streams::kLetGo;
  };

  Supervisor(const GuardianHandle& guardian, const Signals& signals, Terminal& terminal,
             const Term& term, const Limits& limits);

  // `news`: an eventfd that others write when the lease was renewed or lost.
  Outcome watch(int news);

 private:
  void start();
  void sleep(int news);
  void read_reports();
  void hear(const Report& report);
  void started(pid_t group);
  void stopped(int signal);
  void read_signals();
  void check_guardian();
  void check_ownership();
  void check_heartbeat();
  void tell_deadline(LocalTime now);
  void take_over(Outcome::End why);
  void order(Order::Kind kind, int signal = 0) const;
  LocalTime refresh_deadline();
  Outcome::End why_over() const;

  const GuardianHandle& guardian_;
  const Signals& signals_;
  Terminal& terminal_;
  const Term term_;
  const Limits limits_;
  const nanoseconds heartbeat_;
  const nanoseconds patience_;

  pid_t group_ = 0;
  LocalTime deadline_{};               // the last that was known
  LocalTime beat_at_{};                // when the guardian is told next
  std::optional<LocalTime> asked_at_;  // the first order it has not answered
  int continued_ = 0;                  // times the guardian was found stopped
  int start_error_ = 0;
  int stopped_by_ = 0;
  int passed_on_ = 0;
  bool ending_ = false;
  bool is_reaped_ = false;  // the guardian
  std::optional<Outcome> outcome_;
};

}  // namespace simba::cli
