#pragma once

#include <map>
#include <string>

#include "simba/time.h"

namespace simba::torture {

// How long the threads of this process that tell of a loss (the dispatcher, and those that request
// stops) could have run and had no processor, as the kernel says. It says so of a thread when it
// has got one. Where it says nothing (no /proc/self/task/TID/schedstat), it is no time at all.
//
// Threads: a plain value.
class RunQueue {
 public:
  static RunQueue now();

  // Those that tell do so one after the other: the dispatcher calls one of the others.
  nanoseconds since(const RunQueue& before) const;

 private:
  using Waits = std::map<std::string, nanoseconds>;  // of each thread since it began
  static nanoseconds longest(const Waits& before, const Waits& after);

  Waits dispatchers_, revokers_;
};

}  // namespace simba::torture
