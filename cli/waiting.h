#pragma once

#include <optional>
#include <string>

#include "cli/signals.h"
#include "simba/client.h"
#include "simba/locker.h"

namespace simba::cli {

struct Patience {
  std::optional<milliseconds> wait;  // none: as long as it takes
  bool shows_progress = false;       // a line on the terminal, once a second
  milliseconds delay{0};             // before the first claim; `wait` is counted from there
  bool is_told = false;              // a line for a log when it has to wait, and no other
};

enum class Wait { kAcquired, kTooLong, kInterrupted };

struct Waited {
  Wait end{};
  int signal = 0;  // kInterrupted
};

// Takes the mutex: at once on this thread when it is free, else on a thread of its own while this
// one listens to signals. Errors: what SimbaLocker::lock throws.
Waited wait_for_mutex(Client& client, SimbaLocker& locker, const Signals& signals,
                      const Patience& patience);

// "held by 3:4711@web-2 for 12 s, lease ends in at most 9 s". Throws Error when the store does not
// say.
std::string who_holds(Client& client, const std::string& mutex);

}  // namespace simba::cli
