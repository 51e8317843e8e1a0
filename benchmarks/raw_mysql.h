#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct st_mysql;
struct st_mysql_stmt;

namespace simba::bench {

// The driver alone, doing what a call of the MySQL store has to do, and nothing besides: the same
// table, the same settings, the same statements. Trouble ends the program.
//
// Threads: one at a time.
class RawMysql {
 public:
  // Makes the table where it is missing.
  RawMysql(std::uint16_t port, const std::string& table);
  RawMysql(const RawMysql&) = delete;
  RawMysql& operator=(const RawMysql&) = delete;
  ~RawMysql();

  // The token; 0 when somebody else has it: then the row was read, as a waiter must.
  std::uint64_t take(const std::string& mutex, const std::string& owner);
  // Rings where somebody waits.
  bool release(const std::string& mutex, const std::string& owner, std::uint64_t token);
  // The seeds' way, as their driver does it: the text of BEGIN, UPDATE, SELECT, COMMIT. False:
  // somebody else has it.
  bool take_by_transaction(const std::string& mutex, const std::string& owner);
  bool release_by_statement(const std::string& mutex, const std::string& owner);

  // From now on a release of this mutex ends wait_for_ring().
  void wait_at_bell(const std::string& mutex);
  void wait_for_ring(const std::string& mutex);
  std::uint64_t id() const;
  // That the server was ever asked, by anybody.
  double questions();
  // Connections that are not rung: our own.
  void never_ring(std::uint64_t connection) { mine_ = connection; }

 private:
  st_mysql_stmt* prepare(const std::string& sql) const;
  void run(st_mysql_stmt* statement, const std::vector<std::string>& texts,
           const std::vector<std::uint64_t>& numbers, const char* order);
  std::string ask(const std::string& sql);
  void ring(const std::string& waiter);
  std::string with_table(std::string sql) const;

  st_mysql* connection_;
  const std::string table_;
  st_mysql_stmt* take_;
  st_mysql_stmt* take_again_;  // what it released last
  st_mysql_stmt* release_;
  std::string released_;
  std::uint64_t mine_ = 0;
  std::string writes_ = "0";
  std::uint64_t changed_ = 0;  // by the last text
};

}  // namespace simba::bench
