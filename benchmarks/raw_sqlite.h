#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace simba::bench {

// The driver alone, doing what a call of the SQLite store has to do, and nothing besides: the same
// layout, the same settings, the same statements, and after each call the question whether the path
// still leads to the open file. Trouble ends the program.
//
// Threads: one at a time.
class RawSqlite {
 public:
  enum class Synchronous { kNormal, kFull };
  enum class Compare {
    kNo,
    kPath,       // after each call
    kDirectory,  // the store's way: before each write and after each call, and where the directory
                 // is as it was not more than every 100 ms; then the log and the memory, too
  };

  RawSqlite(const std::string& file, Synchronous synchronous, Compare compare = Compare::kPath);
  RawSqlite(const RawSqlite&) = delete;
  RawSqlite& operator=(const RawSqlite&) = delete;
  ~RawSqlite();

  // The token; 0 when somebody else has it: then the row was read, as a waiter must.
  std::int64_t take(const std::string& mutex, const std::string& owner);
  bool release(const std::string& mutex, const std::string& owner, std::int64_t token);
  // All of them in one transaction.
  void renew(const std::vector<std::string>& mutexes, const std::string& owner,
             const std::vector<std::int64_t>& tokens);

 private:
  struct Clock {
    std::int64_t value = 0;
    bool read = false;
    std::int64_t now();
  };
  struct Written {
    std::int64_t acquired_at = 0, token = 0;
  };
  struct File {
    std::uint64_t device = 0, inode = 0;
    bool operator==(const File&) const = default;
  };
  struct Times {
    timespec modified{}, changed{};
  };
  struct Row {
    std::string owner;
    std::int64_t acquired_at = 0, ttl_at = 0, transition_at = 0, token = 0;
  };

  void execute(const char* sql);
  sqlite3_stmt* prepare(const char* sql);
  void end(sqlite3_stmt* statement, int code);
  void observe(const std::string& mutex);
  static File file_on(const std::string& path);
  void check_before();
  void check_after();
  void compare_all();

  const std::string file_, wal_, shm_;
  const Compare compare_;
  const int directory_;
  std::array<File, 3> opened_;
  Times directory_times_;
  std::int64_t compared_at_ = 0;
  sqlite3* db_ = nullptr;
  Clock clock_;
  Written written_;
  Row seen_;
  std::string boot_id_;
  sqlite3_stmt *take_, *renew_, *release_, *observe_;
};

}  // namespace simba::bench
