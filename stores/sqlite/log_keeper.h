#pragma once

#include <sqlite3.h>

#include <cstdint>

#include "stores/sqlite/busy_wait.h"

namespace simba::sqlite {

// Keeps the log beside the file (-wal) short: after a commit of this connection it moves what the
// log holds into the file, now and then.
//
//   100 frames     empties it, at the second commit of the connection: after the first one somebody
//                  starts to work
//   1,000 frames   moves what can be moved, as SQLite itself would; the log is used from its start
//                  again as soon as nobody reads it
//   4,000 frames   empties it
//
// Emptying waits a moment for those who read. SQLite's own way is not enough twice: where others
// claim without a pause there is hardly an instant without a reader, and the log grows for as long.
// And the first process to open the file reads the whole log, not knowing what was moved already,
// and goes on at its end: with `simba run` that is every process, and the log would never get
// shorter.
//
// Threads: one at a time, that of the connection. Errors: none; a log that could not be shortened
// is left to the next commit.
class LogKeeper {
 public:
  explicit LogKeeper(BusyWait& busy) : busy_(busy) {}
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;

  // Instead of SQLite's own checkpoints.
  void attach(sqlite3* db);

 private:
  void committed(sqlite3* db, int frames) noexcept;
  void shorten(sqlite3* db, int mode) noexcept;

  BusyWait& busy_;
  std::uint64_t commits_ = 0;
  int empty_at_ = 0;  // frames; above what an attempt was in vain at
};

}  // namespace simba::sqlite
