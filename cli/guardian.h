#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/guardian_link.h"
#include "simba/time.h"

// The process between `simba run` and the program:
//
//   simba ---- link ---- guardian ---- program ---- what the program starts
//   owns the mutex,      owns a timer
//   renews it
//
// It gets each new deadline through the link and keeps the program within it by itself: TERM at
// deadline - kill_after, KILL at the deadline. When the link closes, `simba` is gone and the
// program is ended at once. It reports the program's end only when nothing that the program started
// is left.
namespace simba::cli {

struct Ward {
  std::vector<std::string> program;
  std::string mutex;
  nanoseconds kill_after{};
  int tty = -1;                        // whose foreground the program may take; -1: none
  std::vector<std::string> secrets{};  // variables that it does not see
};

struct GuardianHandle {
  pid_t pid = 0;
  GuardianLink link;
};

// To be called while this process has no other thread and no store is open. The guardian is in a
// process group of its own, so that what kills the group of `simba` does not kill both.
GuardianHandle start_guardian(const Ward& ward);

// The same while threads run: in a new process of this program, which calls guard_if_asked() first
// of all.
GuardianHandle spawn_guardian(const Ward& ward);

// What the process was started for, if it was: argv as spawn_guardian() makes it. Does not return
// then.
void guard_if_asked(int argc, char** argv);

}  // namespace simba::cli
