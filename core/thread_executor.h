#pragma once

#include <memory>

#include "simba/executor.h"

namespace simba::core {

// The executor with real time and real threads: a dispatcher asleep in epoll on a timerfd of
// CLOCK_BOOTTIME (a condition variable cannot wait on that clock), and pools that grow on demand
// for store calls, callbacks and stop requests, with one thread each that stays.
std::shared_ptr<Executor> make_thread_executor();

}  // namespace simba::core
