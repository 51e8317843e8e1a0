#include "core/hand_over.h"

#include <utility>

namespace simba::core {
namespace {

// False when the user's executor does not take it: then it is ours to run.
bool run_on(const HandleExecutor& users, const std::function<void()>& task) noexcept {
  if (!users) return false;
  try {
    users(task);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void hand_over(Executor& executor, HandleExecutor users, std::function<void()> task) {
  executor.callback([users = std::move(users), task = std::move(task)] {
    if (!run_on(users, task)) task();
  });
}

}  // namespace simba::core
