#pragma once

#include <cstdint>

namespace simba::core {

// 64 bits from the kernel at every call. Nothing is buffered, so a fork repeats nothing.
std::uint64_t random64();

}  // namespace simba::core
