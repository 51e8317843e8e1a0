#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "core/bell.h"
#include "core/lock_manager.h"

namespace simba::core {
namespace {

constexpr std::chrono::seconds kPatience{1};

std::terminate_handler before = nullptr;

// Of this thread alone: the others go on with their work until the process is gone. By threads of
// the engines: this one may stand in the middle of anything.
void give_back_what_is_held() noexcept {
  struct Left {
    Bell bell;
    std::atomic<std::size_t> count{0};
  };
  const auto left = std::make_shared<Left>();
  for (const auto& hold : held_by_this_thread()) {
    ++left->count;
    hold->unlock_elsewhere([left] {
      --left->count;
      left->bell.ring();
    });
  }
  left->bell.wait(Bell::Clock::now() + kPatience, [&] { return left->count == 0; });
}

[[noreturn]] void on_terminate() {
  static std::atomic<bool> is_under_way{false};
  if (is_under_way.exchange(true)) {  // by another thread, or a handler that comes back to us
    std::this_thread::sleep_for(2 * kPatience);
    std::abort();
  }
  give_back_what_is_held();
  if (before) before();
  std::abort();
}

}  // namespace
}  // namespace simba::core

namespace simba::inline v0 {

void LockManager::release_on_terminate() {
  static std::once_flag once;
  std::call_once(once, [] {
    core::before = std::get_terminate();
    std::set_terminate(core::on_terminate);
  });
}

}  // namespace simba::inline v0
