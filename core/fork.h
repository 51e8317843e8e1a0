#pragma once

#include <cstdint>

namespace simba::core {

// Differs between a process and the child it forked. A handle that was made under another epoch is
// dead: it owns nothing, does no I/O and takes no lock (somebody may have held it at the fork).
std::uint64_t fork_epoch() noexcept;

}  // namespace simba::core
