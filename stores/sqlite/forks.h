#pragma once

#include <sys/types.h>

#include <tuple>

namespace simba::sqlite {

// Which file it is, whatever its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;

  explicit operator bool() const { return inode != 0; }
  friend bool operator==(const FileId&, const FileId&) = default;
  friend bool operator<(const FileId& a, const FileId& b) {
    return std::tie(a.device, a.inode) < std::tie(b.device, b.inode);
  }
};

// How often this process was made by fork() since the first store was opened. A number that differs
// from the one a store remembers means: this is a child, and nothing of that store may be touched.
unsigned fork_count() noexcept;

// A file this process has open, for as long as this lives.
//
// SQLite keeps a list, per process, of the locks it believes to hold. A child inherits the list but
// not the locks, so a file that was open in the parent must not be opened again in a child: that
// would break the file for everybody.
//
// Threads: any.
class OpenFile {
 public:
  // Throws Error (kMisuse) in a forked child of a process that had this file open.
  explicit OpenFile(FileId id);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

 private:
  FileId id_;
};

}  // namespace simba::sqlite
