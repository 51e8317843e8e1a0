#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "simba/postgres.h"
#include "simba/time.h"

namespace simba::postgres {

// The server that one store speaks to, and what its connections found out about it.
//
// Threads: any.
class Endpoint {
 public:
  // What libpq takes, for one host.
  using Keywords = std::vector<std::pair<std::string, std::string>>;

  // Throws Error (kMisconfigured). Never repeats a value.
  explicit Endpoint(const PostgresOptions& options);

  const PostgresOptions& options() const { return options_; }
  // One for each host of the conninfo, in its order; empty where the user brings the connections.
  const std::vector<Keywords>& candidates() const { return candidates_; }
  const std::string& where() const { return where_; }  // "host:port/database", for errors
  const std::string& table() const { return options_.table; }
  const std::string& quoted_table() const { return quoted_table_; }
  milliseconds connect_timeout() const { return connect_timeout_; }

  bool is_behind_pooler() const { return behind_pooler_; }
  // Says so in the log, once.
  void note_pooler();
  void log(LogLevel level, const std::string& line) const;

 private:
  void read_conninfo();

  const PostgresOptions options_;
  std::vector<Keywords> candidates_;
  std::string where_, quoted_table_;
  milliseconds connect_timeout_{5'000};
  std::atomic<bool> behind_pooler_{false};
};

}  // namespace simba::postgres
