#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "torture/error_log.h"
#include "torture/gaps.h"
#include "torture/history.h"
#include "torture/linear.h"
#include "torture/plan.h"
#include "torture/stall.h"
#include "torture/store_rules.h"

namespace simba::torture {

enum class FaultKind {
  kKill,          // SIGKILL; the next process of the client is the end of it
  kStop,          // SIGSTOP
  kStopInWindow,  // the same, between a look at the clock and the write that follows
  kDelay,
  kStall,
  kCut,
  kReset,
  kMute,
  kServerKill,
  kClockStep,
  kFailover,  // SIGKILL for the server that leads; it comes back when another one does
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kFailover) + 1;
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind;
  int client = -1;  // -1: the server
  LocalTime begin{}, end{};
  nanoseconds by{};  // of a step of the clock
  // Of a failover: just before and just after the kill of the server that led. It begins sooner,
  // where the others were held back, and ends when the server is back.
  Period kill{LocalTime::max(), LocalTime::min()};
};

// What was asked of the store and answered, of one mutex.
struct CallHistory {
  std::string mutex;
  std::vector<Call> calls;
  LocalTime cut = LocalTime::max();  // from then on not all were noted down
  bool is_cut = false;               // because a log was full
};

// The errors that clients met.
struct ErrorHistory {
  ErrorCounts counts{};           // of calls to the store
  std::vector<Trouble> troubles;  // the first comes first
};

// What happened in a run.
struct Outcome {
  LocalTime began{}, calm_since{}, owners_killed{}, ended{};
  std::vector<History> histories;  // one per mutex
  std::vector<CallHistory> calls;  // the same
  ErrorHistory errors;
  StoreRules rules;
  std::vector<Fault> faults;
  std::set<FaultKind> possible;  // what the target allows
  std::vector<Stall> stalls;
  std::vector<Violation> bad_ends;  // of clients that crashed, failed or hung: no promise, "end"
  nanoseconds held_up{};            // the longest time between two rounds of the harness
  int steps_seen = 0;               // steps of the clock that the server's own answer showed
  int failovers_seen = 0;           // after which another server led
  bool forgets = false;             // what a failover may do
  bool is_cut_short = false;  // a promise was broken or a client had ended, and that was enough
  bool is_overfull = false;   // a notebook had no room for all
};

// What follows from it. Safety is never voided; a verdict on time is, where the machine stood still
// for at least as long as an owner, or a stop request, was late. Any later than that breaks P6 or
// P4.
struct Verdict {
  enum class Timing { kInTime, kLate, kVoid, kNotJudged };

  std::vector<Violation> violations;
  Timing timing = Timing::kInTime;
  nanoseconds bound{};             // for `longest_takeover`
  nanoseconds longest_takeover{};  // after the faults, and after the owners' death, of any mutex
  Gap longest_gap;                 // at any time
  int without_owner = 0;           // mutexes that nobody owned after the faults
  struct Tellings {                // requests to stop, of those who had lost (P4)
    int late = 0, never = 0;
    int stalled = 0;        // late, as the machine stood still
    nanoseconds longest{};  // running time, of those that were late
  };
  Tellings tellings;
  std::size_t terms = 0, clean_stalls = 0;
  std::uint64_t looks = 0;
  Writes writes;
  bool sees_the_bug = false;  // the unfenced register lost: a harness that is blind proves nothing
  bool is_overfull = false;
  std::vector<FaultKind> missing;  // what was possible and never happened
  int clock_steps = 0, steps_seen = 0, failovers = 0, failovers_seen = 0;
  struct Calls {
    std::size_t mutexes = 0, noted = 0;
    std::size_t undecided = 0;  // mutexes: the search was given up
    std::size_t forgotten = 0;  // mutexes: an order there is only as a failover may forget
    std::size_t missing = 0;    // mutexes of which nothing was noted down
    bool is_cut = false;        // a log was full
  };
  Calls calls;
  ErrorCounts errors{};       // of calls to the store
  std::size_t forgotten = 0;  // times that two owned after a failover that may forget: no violation

  // A clock that was set and never seen to be off was not attacked.
  bool clock_acts() const { return clock_steps == 0 || steps_seen > 0; }
  bool fails_over() const { return failovers == 0 || failovers_seen > 0; }
  bool holds() const {
    return violations.empty() && sees_the_bug && clock_acts() && fails_over() && missing.empty() &&
           !is_overfull && calls.undecided == 0 && calls.missing == 0;
  }
};

Verdict judge(const Plan& plan, const Outcome& outcome);

// What a run is called, for people and machines.
struct Title {
  std::string store, command;
  std::vector<std::string> spared;
};
std::string as_text(const Title& title, const Plan& plan, const Outcome& outcome,
                    const Verdict& verdict);
std::string as_json(const Title& title, const Plan& plan, const Outcome& outcome,
                    const Verdict& verdict);
// An SVG file.
std::string as_picture(const Title& title, const Plan& plan, const Outcome& outcome,
                       const Verdict& verdict);

}  // namespace simba::torture
