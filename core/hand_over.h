#pragma once

#include <functional>
#include <memory>

#include "simba/client.h"
#include "simba/executor.h"

namespace simba::core {

// Runs code of the user's, once, on the executor that he brought; on one of ours for callbacks
// where he brought none, or where his throws instead of taking it, or drops it. His is asked there
// too: it may run the task where it stands, or wait for room.
void hand_over(std::shared_ptr<Executor> executor, HandleExecutor users,
               std::function<void()> task);

}  // namespace simba::core
