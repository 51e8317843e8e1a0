#pragma once

#include <sys/types.h>

namespace simba::cli {

// Every process that descends from this one. Both callers are child subreapers, so also what was
// started in the background, in a session of its own, or by a parent that is gone.
//
// Not reached: processes of another user (a program that became somebody else), and where /proc is
// not mounted, everything outside the group.

// TERM to the group once, and to each descendant outside it; CONT to those that are stopped.
void ask_descendants_to_end(pid_t group);

// KILL to each, however fast they fork. Returns when all were signalled, not when all are gone.
void kill_descendants();

// True when this process has no children left; their statuses are thrown away.
bool reap_descendants();

}  // namespace simba::cli
