#pragma once

#include <cstddef>
#include <filesystem>
#include <utility>

namespace simba::torture {

// A file in memory, seen by all processes that open it. What one has written is there when it is
// killed in the next instant: the pages are the kernel's.
//
// Threads: any; what is in it says who writes.
// Errors: std::system_error.
class SharedFile {
 public:
  // Makes it when it is not there, of this size: zeros, which take no space until they are written.
  SharedFile(const std::filesystem::path& file, std::size_t size);
  ~SharedFile();
  SharedFile(SharedFile&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
  SharedFile& operator=(SharedFile&&) = delete;

  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace simba::torture
