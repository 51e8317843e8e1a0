#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "torture/shared_file.h"

namespace simba::torture {

// What a client knows of itself and nobody else can see: how much of its heap is in use. The
// kernel only tells what the allocator has ever needed at once.
//
// Threads: one of one process beats; anybody reads.
class Pulse {
 public:
  explicit Pulse(const std::filesystem::path& file);

  void beat() const;
  std::uint64_t heap() const { return page().load(); }  // bytes; 0: never beaten

 private:
  std::atomic<std::uint64_t>& page() const {
    return *static_cast<std::atomic<std::uint64_t>*>(file_.memory());
  }

  SharedFile file_;
};

}  // namespace simba::torture
