#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
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
// It also shares one memory between all connections of a process to one file, and a new connection
// joins it even where its own file was deleted, apart from all other processes. So whoever finds
// that a file is not what it was makes all who have it open here let go of it.
//
// Threads: any.
class OpenFile {
 public:
  // Hands over the connections that nobody uses. Called by any thread; asks for no other file.
  using LetGo = std::function<std::shared_ptr<void>()>;

  // Throws Error (kMisuse) in a forked child of a process that had this file open.
  OpenFile(FileId id, LetGo let_go);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  // Nobody in this process goes on with the file as it is open now. Nothing the second time.
  void give_up() const;
  bool is_given_up() const noexcept { return given_up_.load(std::memory_order_acquire); }

 private:
  const FileId id_;
  const LetGo let_go_;
  mutable std::atomic<bool> given_up_{false};
};

}  // namespace simba::sqlite
