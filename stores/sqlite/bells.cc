#include "stores/sqlite/bells.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "stores/sqlite/file_guard.h"
#include "stores/sqlite/location.h"

namespace simba::sqlite {
namespace {

constexpr const char* kWaited = "waited";
using Make = Bells::Make;

// Opens the file, with at least `size` bytes in it; -1: it cannot be had. Only the last byte is
// written, which has no meaning, so that two processes do not undo each other's bytes.
int open_file(const std::filesystem::path& path, off_t size, Make make) noexcept {
  const int how = make == Make::kYes ? O_CREAT : 0;
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOATIME | how, 0600);
  if (descriptor < 0) return -1;
  struct stat info {};
  if (fstat(descriptor, &info) == 0 &&
      (info.st_size >= size || pwrite(descriptor, "", 1, size - 1) == 1)) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

FileId id_of(int descriptor) noexcept {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

// Where it is missing its directory is made, too, and when it is there others are told.
int open_waited(const std::filesystem::path& file) noexcept try {
  constexpr off_t kSize = Bells::kCount + 1;
  const int there = open_file(file, kSize, Make::kNo);
  if (there >= 0 || errno != ENOENT) return there;
  const std::filesystem::path bells = file.parent_path();
  mkdir(bells.c_str(), 0700);
  const int made = open_file(file, kSize, Make::kYes);
  if (made < 0 || utimensat(AT_FDCWD, bells.parent_path().c_str(), nullptr, 0) == 0) return made;
  close(made);
  return -1;
} catch (const std::bad_alloc&) {
  return -1;
}

// As who cleans up by age does, where only rung and never written files look old.
bool is_deleted(int descriptor) noexcept {
  struct stat info {};
  return fstat(descriptor, &info) == 0 && info.st_nlink == 0;
}

}  // namespace

// FNV-1a: part of the layout, every process must agree.
unsigned Bells::of(std::string_view mutex) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : mutex) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<unsigned>((hash ^ (hash >> 32)) % kCount);
}

std::filesystem::path Bells::file(const std::filesystem::path& directory, unsigned bell) {
  char name[8];
  std::snprintf(name, sizeof name, "%02u", bell % kCount);
  return directory / name;
}

std::filesystem::path Bells::waited(const std::filesystem::path& directory) {
  return directory / kWaited;
}

bool Bells::hang(const std::filesystem::path& directory, unsigned bell) noexcept try {
  const int marks = open_waited(waited(directory));
  if (marks < 0) return false;
  const bool said = pwrite(marks, "\1", 1, bell) == 1;
  close(marks);
  const int file_descriptor = open_file(file(directory, bell), 1, Make::kYes);
  if (file_descriptor >= 0) close(file_descriptor);
  return said && file_descriptor >= 0;
} catch (const std::bad_alloc&) {
  return false;
}

Bells::Bells(std::filesystem::path directory, Make make)
    : directory_(std::move(directory)), waited_file_(waited(directory_)) {
  for (auto& descriptor : descriptors_) descriptor.store(-1, std::memory_order_relaxed);
  if (make == Make::kNo) return;
  if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    fail_system(errno, "create the directory", directory_);
  }
  const int marks = open_waited(waited_file_);
  if (marks < 0) return;
  void* mapped = mmap(nullptr, kCount, PROT_READ, MAP_SHARED, marks, 0);
  if (mapped != MAP_FAILED) waited_ = static_cast<const char*>(mapped);
  waited_id_ = id_of(marks);
  close(marks);
}

Bells::~Bells() {
  for (auto& descriptor : descriptors_) {
    if (const int open = descriptor.load(std::memory_order_relaxed); open >= 0) close(open);
  }
  if (waited_ != nullptr) munmap(const_cast<char*>(waited_), kCount);
}

void Bells::ring(unsigned bell) noexcept {
  if (!is_waited_for(bell)) return;
  const int open = descriptor(bell);
  if (open < 0) return;
  if (is_deleted(open)) replace(open, bell);
  char byte = 0;
  if (pread(open, &byte, 1, 0) != 1) {
    // Somebody emptied the file; a listener hears a write as well.
    static_cast<void>(!pwrite(open, "\n", 1, 0));
  }
}

// The bell that hangs there now, under the same number: other threads may be ringing it.
void Bells::replace(int descriptor, unsigned bell) noexcept {
  const int opened = open_file(file(directory_, bell), 1, Make::kYes);
  if (opened < 0) return;
  dup3(opened, descriptor, O_CLOEXEC);
  close(opened);
}

// The new file is mapped in the place of the old one, where other threads may be looking. Nobody
// waits by one that is missing.
void Bells::look_again() noexcept {
  if (waited_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (file_id(waited_file_) == waited_id_) return;
  const int marks = open_file(waited_file_, kCount + 1, Make::kNo);
  if (marks < 0) return;
  const FileId found = id_of(marks);
  if (mmap(const_cast<char*>(waited_), kCount, PROT_READ, MAP_SHARED | MAP_FIXED, marks, 0) !=
      MAP_FAILED) {
    waited_id_ = found;
  }
  close(marks);
}

// A waiter says that it listens, then looks at the mutex. We have released, then look here. So one
// of the two sees the other, as long as neither looks early: hence the full barrier.
bool Bells::is_waited_for(unsigned bell) noexcept {
  barrier_.fetch_add(1, std::memory_order_seq_cst);
  return waited_ == nullptr || __atomic_load_n(waited_ + bell, __ATOMIC_SEQ_CST) != 0;
}

int Bells::descriptor(unsigned bell) noexcept {
  std::atomic<int>& kept = descriptors_[bell];
  int current = kept.load(std::memory_order_acquire);
  if (current >= 0) return current;
  const int opened = open_file(file(directory_, bell), 1, Make::kYes);
  if (opened < 0) return -1;
  if (kept.compare_exchange_strong(current, opened, std::memory_order_acq_rel)) return opened;
  close(opened);  // another thread was faster
  return current;
}

}  // namespace simba::sqlite
