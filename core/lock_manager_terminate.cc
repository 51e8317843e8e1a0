#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>

#include "core/bell.h"
#include "core/lock_manager.h"

namespace simba::core {
namespace {

constexpr std::chrono::seconds kPatience{1};

std::atomic<std::terminate_handler> before{nullptr};

// On threads of the engines: this one may stand in the middle of anything.
void give_back_everything() noexcept {
  struct Left {
    Bell bell;
    std::atomic<std::size_t> count{0};
  };
  const auto left = std::make_shared<Left>();
  for (const auto& locks : Locks::all_if_free()) {
    for (const auto& hold : locks->held()) {
      ++left->count;
      hold->unlock_later([left] {
        --left->count;
        left->bell.ring();
      });
    }
  }
  left->bell.wait(Bell::Clock::now() + kPatience, [&] { return left->count == 0; });
}

[[noreturn]] void on_terminate() {
  give_back_everything();
  const std::terminate_handler next = before;
  if (next) next();
  std::abort();
}

}  // namespace
}  // namespace simba::core

namespace simba::inline v0 {

void LockManager::release_on_terminate() {
  if (std::get_terminate() == core::on_terminate) return;
  core::before = std::set_terminate(core::on_terminate);
}

}  // namespace simba::inline v0
