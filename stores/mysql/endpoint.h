#pragma once

#include <atomic>
#include <string>

#include "simba/mysql.h"
#include "simba/time.h"

namespace simba::mysql {

// The server that one store speaks to, and what its connections found out about it.
//
// Threads: any.
class Endpoint {
 public:
  // Throws Error (kMisconfigured). Never repeats a value that could be a secret.
  explicit Endpoint(const MysqlOptions& options);

  const MysqlOptions& options() const { return options_; }
  const std::string& where() const { return where_; }  // "host:port,host:port/database"
  const std::string& table() const { return options_.table; }
  // `database`.`table`, so that the session's database does not matter.
  const std::string& quoted_table() const { return quoted_table_; }
  const std::string& quoted_database() const { return quoted_database_; }
  // Another one may write where this one only reads.
  bool has_several_hosts() const;
  milliseconds connect_timeout() const { return options_.connect_timeout; }

  void log(LogLevel level, const std::string& line) const;
  // Once for each kind.
  enum class Note { kOldTable, kNoDoorbell, kForeignWaiter, kCount };
  void note_once(Note note, const std::string& line);

 private:
  const MysqlOptions options_;
  std::string where_, quoted_database_, quoted_table_;
  std::atomic<bool> said_[static_cast<std::size_t>(Note::kCount)]{};
};

}  // namespace simba::mysql
