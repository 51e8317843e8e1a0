#pragma once

#include <cstdint>
#include <string>

struct pg_conn;
struct pg_result;

namespace simba::bench {

// The driver alone, doing what a call of the PostgreSQL store has to do, and nothing besides: the
// same table, the same settings, the same statements. Trouble ends the program.
//
// Threads: one at a time.
class RawPostgres {
 public:
  // Makes the table where it is missing.
  RawPostgres(const std::string& conninfo, const std::string& table);
  RawPostgres(const RawPostgres&) = delete;
  RawPostgres& operator=(const RawPostgres&) = delete;
  ~RawPostgres();

  // The token; 0 when somebody else has it: then the row was read, as a waiter must.
  std::int64_t take(const std::string& mutex, const std::string& owner);
  bool release(const std::string& mutex, const std::string& owner, std::int64_t token);
  // The seeds' way: BEGIN, UPDATE, SELECT, COMMIT, and an UPDATE that flushes too. False: somebody
  // else has it.
  bool take_by_transaction(const std::string& mutex, const std::string& owner);
  bool release_by_statement(const std::string& mutex, const std::string& owner);

  void listen();
  void wait_for_notification();

 private:
  void prepare(const char* name, std::string sql, int parameters, const unsigned* types);
  void execute(const std::string& sql);
  std::string with_table(std::string sql) const;
  pg_result* run(const char* name, int parameters, const char* const* values);
  bool changes_one(const char* name, int parameters, const char* const* values);

  pg_conn* connection_;
  const std::string table_;
};

}  // namespace simba::bench
