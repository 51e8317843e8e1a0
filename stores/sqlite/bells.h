#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "stores/sqlite/forks.h"

namespace simba::sqlite {

// Small files beside the database that releases touch and waiters of other processes listen to.
// Mutexes share them by a hash that is the same in every process: a bell says "look again", no
// more.
//
//   locks.db-bell/waited   a byte per bell: 1 once anybody has listened to it
//   locks.db-bell/00 ...   the bells, made when first used
//
// To ring is to read one byte: the kernel tells the listeners of it, and nothing is written to the
// disk. A bell nobody ever listened to is not rung.
//
// Who makes `waited` anew, because somebody deleted it, touches the directory of the database: the
// guards of all processes see that there, and what they have of the old file counts no more.
//
// Threads: any. Errors: none once it is made; a bell that cannot be rung costs a waiter time only.
class Bells {
 public:
  static constexpr unsigned kCount = 64;
  enum class Make { kNo, kYes };

  static unsigned of(std::string_view mutex) noexcept;
  static std::filesystem::path file(const std::filesystem::path& directory, unsigned bell);
  static std::filesystem::path waited(const std::filesystem::path& directory);
  // Makes the files where they are missing and says that somebody listens. False: others may not
  // ring.
  static bool hang(const std::filesystem::path& directory, unsigned bell) noexcept;

  // Makes the directory (0700). Throws Error where it cannot be made.
  Bells(std::filesystem::path directory, Make make);
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  ~Bells();

  void ring(unsigned bell) noexcept;
  // `waited` may be another file now.
  void look_again() noexcept;

 private:
  bool is_waited_for(unsigned bell) noexcept;
  int descriptor(unsigned bell) noexcept;
  void replace(int descriptor, unsigned bell) noexcept;

  const std::filesystem::path directory_, waited_file_;
  const char* waited_ = nullptr;  // mapped, read only; null: every bell is rung
  std::mutex mutex_;
  FileId waited_id_;  // guarded by mutex_; of what is mapped
  std::atomic<unsigned> barrier_{0};
  std::array<std::atomic<int>, kCount> descriptors_;  // -1: not opened yet
};

}  // namespace simba::sqlite
