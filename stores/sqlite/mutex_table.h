#pragma once

#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/sqlite/connection.h"
#include "stores/sqlite/statement.h"

namespace simba::sqlite {

inline constexpr std::size_t kMaxName = 255;  // bytes, of a mutex and of a wire id

// The atomic steps on simba_mutex: one statement each.
//
// Threads: one at a time, that of the connection. Errors: what is wrong with one claim is an
// answer; trouble of the file is thrown.
class MutexTable {
 public:
  explicit MutexTable(Connection& connection);

  Answer contend(const Claim& claim);
  // True: this wire id had it, and it is free now.
  bool release(const Claim& claim);
  bool evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how);
  Answer observe(std::string_view mutex);
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit);

  // Throws Error (kMisconfigured) for what no row can hold.
  static void check(std::string_view mutex, std::string_view wire_id, Token token);

 private:
  Answer take(const Claim& claim);
  Answer renew(const Claim& claim);
  Answer look(Statement& row, std::string_view mutex);
  Observation read_row(Statement& row, int first_column);

  Connection& connection_;
  Statement take_, renew_, release_, evict_, observe_, list_;
};

}  // namespace simba::sqlite
