#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace simba::core {

// Differs between a process and the child it forked. A handle that was made under another epoch is
// dead: it owns nothing, does no I/O and takes no lock (somebody may have held it at the fork).
std::uint64_t fork_epoch() noexcept;

// Never destroys it: in a forked child a thread of the parent may stand in the middle of it.
template <class T>
void leave_alone(std::shared_ptr<T> object) noexcept {
  static_cast<void>(new (std::nothrow) std::shared_ptr<T>(std::move(object)));
}

}  // namespace simba::core
