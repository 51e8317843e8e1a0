#include "torture/pulse.h"

#include <malloc.h>

namespace simba::torture {

Pulse::Pulse(const std::filesystem::path& file) : file_(file, sizeof(std::atomic<std::uint64_t>)) {}

void Pulse::beat() const {
  const auto heap = mallinfo2();
  page().store(heap.uordblks + heap.hblkhd);  // in all arenas, and beside them
}

}  // namespace simba::torture
