#pragma once

#include <filesystem>
#include <string>

#include "simba/sqlite.h"

namespace simba::sqlite {

// Where the file is, after everything about the place was checked.
struct Location {
  std::filesystem::path given;  // absolute, symbolic links unresolved: what is compared later
  std::filesystem::path file;   // the same, links resolved: what SQLite opens
  bool writable = true;

  std::filesystem::path wal() const { return file.string() + "-wal"; }
  std::filesystem::path shm() const { return file.string() + "-shm"; }
  std::filesystem::path bells() const { return file.string() + "-bell"; }
};

// Checks the directory, its file system and the file; makes an empty file (0600) where none is, and
// the directories of the default file (0700).
//
// Never opens the file: closing any descriptor of it would drop the locks SQLite holds in this
// process.
Location locate(const std::filesystem::path& file);

// The file that locate() would make, or an empty path where there is one. Checks the place alike,
// and makes nothing.
std::filesystem::path missing_file(const std::filesystem::path& file);

// An errno of this store's own system calls, as an Error that names the path and what to do.
[[noreturn]] void fail_system(int error, const std::string& doing,
                              const std::filesystem::path& path);

}  // namespace simba::sqlite
