#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

#include "stores/sqlite/forks.h"
#include "stores/sqlite/location.h"

namespace simba::sqlite {

FileId file_id(const std::filesystem::path& path) noexcept;

// Asks, cheaply, whether the paths still lead to the files that are open: the database, its log and
// its shared memory. A process that goes on with a deleted file would be alone with its locks.
//
// A stat() of a path costs as much as a tenth of a claim. So the directory is asked first: as long
// as its times have not changed, none of its entries has. The paths themselves are compared after
// every change of the directory, and every 100 ms for the sake of the directories above it.
//
// Threads: one at a time.
class FileGuard {
 public:
  explicit FileGuard(const Location& location);
  FileGuard(const FileGuard&) = delete;
  FileGuard& operator=(const FileGuard&) = delete;
  ~FileGuard();

  // The files are as SQLite opened them now.
  void remember();
  FileId database() const { return database_; }
  // The shared memory of this process is the one at its path, where all others look for it.
  bool shares_memory() const;

  // Once it has said no, it says no.
  bool is_unchanged(std::int64_t boot_ms);
  // It looked at the paths themselves for that: something beside the database may be new.
  bool has_compared() const noexcept { return has_compared_; }

 private:
  struct Stamp {
    timespec modified{};
    timespec changed{};
    bool operator==(const Stamp& other) const;
  };

  Stamp read_stamp() const noexcept;
  bool are_same_files() const noexcept;

  const Location location_;
  const std::filesystem::path wal_, shm_;
  const int directory_;  // a descriptor that only names
  FileId database_, wal_id_, shm_id_;
  Stamp stamp_;
  bool stamp_settled_ = false;  // no later change can bear the same times
  std::int64_t compared_at_ = 0;
  bool is_lost_ = false;
  bool has_compared_ = false;
};

}  // namespace simba::sqlite
