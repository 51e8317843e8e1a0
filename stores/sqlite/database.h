#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "stores/sqlite/bells.h"
#include "stores/sqlite/connection.h"
#include "stores/sqlite/mutex_table.h"

namespace simba::sqlite {

// One file for as long as it is the same file: its connections and its bells. When the path leads
// to another file, this one is given up as a whole and a new Database is opened.
//
// Connections are opened on demand. One caller at a time writes: the file has one write lock, and
// within a process it is cheaper to wait for a condition than to try that lock again and again.
// Who keeps a term or gives it up is next, before all who want one: however many these are, a
// renewal waits for one write at most.
//
// Threads: any number of calls at once.
class Database {
 public:
  enum class Access { kRead, kTake, kKeep };  // the last two write

  // A connection for one call; goes back when this goes.
  class Session {
   public:
    Session(Session&&) = delete;
    ~Session();
    Connection& connection() { return connection_; }
    MutexTable& table() { return table_; }

   private:
    friend class Database;
    Session(Database& database, LocalTime deadline);
    Connection connection_;
    MutexTable table_;
  };
  struct GiveBack {
    Database* database;
    Access access;
    void operator()(Session* session) const { database->give_back(session, access); }
  };
  using Borrowed = std::unique_ptr<Session, GiveBack>;

  // Throws Error, see open_sqlite().
  Database(const std::filesystem::path& file, SqliteOptions::Synchronous synchronous,
           const Host& host, LocalTime deadline);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // Throws Error (kDenied) where the file can only be read.
  void check(Access access) const;
  Borrowed borrow(Access access, LocalTime deadline);
  const Location& location() const { return location_; }
  Bells& bells() { return bells_; }
  // Its end, for every store of this process that has it open.
  void give_up() const { open_.give_up(); }
  // The paths still lead to the files that this connection has open. The bells are looked at again
  // where there may be others.
  bool is_unchanged(Connection& connection);
  // The path still leads to this file.
  bool is_current() const noexcept { return file_id(location_.given) == id_; }

 private:
  using Sessions = std::vector<std::unique_ptr<Session>>;

  std::unique_ptr<Session> open_session(LocalTime deadline);
  std::shared_ptr<Sessions> let_go();
  [[noreturn]] void fail_replaced(const char* how) const;
  void wait_to_write(std::unique_lock<std::mutex>& lock, Access access, LocalTime deadline);
  void give_back(Session* session, Access access);

  const Location location_;
  const SqliteOptions::Synchronous synchronous_;
  const Host host_;
  const FileId id_;
  Bells bells_;

  std::mutex mutex_;
  std::condition_variable may_keep_, may_take_;
  bool writing_ = false;     // guarded by mutex_
  int waiting_to_keep_ = 0;  // guarded by mutex_
  int waiting_to_take_ = 0;  // guarded by mutex_
  Sessions idle_;            // guarded by mutex_
  const OpenFile open_;      // the last: it asks for the others
};

}  // namespace simba::sqlite
