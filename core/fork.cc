#include "core/fork.h"

#include <pthread.h>

#include <atomic>

namespace simba::core {
namespace {

std::atomic<std::uint64_t> epoch{1};

void count_fork() { epoch.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint64_t fork_epoch() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  static_cast<void>(registered);
  return epoch.load(std::memory_order_relaxed);
}

}  // namespace simba::core
