#pragma once

#include <mysql.h>

#include <memory>
#include <string>
#include <vector>

#include "simba/time.h"
#include "stores/kit/pool.h"
#include "stores/kit/worker.h"
#include "stores/mysql/endpoint.h"
#include "stores/mysql/failure.h"
#include "stores/mysql/leash.h"
#include "stores/mysql/result.h"

namespace simba::mysql {

class Prepared;
struct Statements;

// One connection, with deadlines: libmariadb's non-blocking calls and poll().
//
// Threads: one at a time. Errors: Error, see failure.h. After a deadline that passed, and after
// some errors, it is not usable any more.
class Connection : public kit::Pooled {
 public:
  enum class Database { kOfTheUrl, kNone };

  // Connects, blocking: names are resolved without a deadline.
  Connection(Endpoint& endpoint, const kit::StopSignal& stop,
             Database database = Database::kOfTheUrl);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  bool is_usable() noexcept override;
  bool is_mariadb() const noexcept { return mariadb_connection(handle_) != 0; }
  bool speaks_mariadb() const noexcept { return speaks_mariadb_; }  // its statements
  // An assignment that makes transactions read only where the server is. By itself read_only does
  // not bind everybody: who may override it would be granted leases on a replica, beside those of
  // the primary.
  std::string as_the_server_reads() const;
  // Whether the server does, now.
  bool only_reads(LocalTime deadline);
  std::uint64_t id() const noexcept { return mysql_thread_id(handle_); }

  // Runs a text of one or more statements, in one round trip. The rows are the last statement's. An
  // answer of more than `most_bytes` is no answer.
  Result query(const std::string& sql, LocalTime deadline, std::size_t most_bytes = Leash::kUsual);
  // The same with the rows of each.
  std::vector<Result> query_all(const std::string& sql, LocalTime deadline,
                                std::size_t most_bytes = Leash::kUsual);
  // A statement of statements(), prepared when it is first asked for.
  Prepared& prepared(std::size_t which, LocalTime deadline);

  // What fits this connection's server and table.
  void set_statements(std::shared_ptr<const Statements> statements);
  const Statements& statements() const { return *statements_; }

  Endpoint& endpoint() const noexcept { return endpoint_; }
  MYSQL* get() const noexcept { return handle_; }

  // Goes on with a call of libmariadb until it is through: `status` is what the call's _start gave,
  // `go_on` its _cont. A Leash is around both.
  template <class GoOn>
  void finish(int status, GoOn go_on, LocalTime deadline, const kit::StopSignal* stop = nullptr) {
    while (status != 0) status = go_on(wait(status, deadline, stop));
    check_leash();
  }
  // Events as for poll().
  static short events_of(int status) noexcept;
  // Throws what the connection's error number means.
  [[noreturn]] void fail(unsigned number, const char* text);
  // A call is given up half way.
  void spoil() noexcept { broken_ = true; }
  // What the last error told is dealt with.
  void mend() noexcept { broken_ = false; }
  void check_not_late(LocalTime deadline) const;
  // Throws where the server was cut short.
  void check_leash();

 private:
  // How the call goes on; throws once the deadline has passed.
  int wait(int status, LocalTime deadline, const kit::StopSignal* stop);
  [[noreturn]] void give_up();
  void connect_to_any(const kit::StopSignal& stop, Database database);
  void connect_to(const MysqlOptions::Host& host, const kit::StopSignal& stop, Database database);
  void adopt(MYSQL* given);
  void take_texts();
  void set_options();
  void set_tls();
  void look_around(LocalTime deadline);
  void close() noexcept;

  Endpoint& endpoint_;
  MYSQL* handle_ = nullptr;
  bool speaks_mariadb_ = false;
  bool broken_ = false;
  bool connecting_ = true;
  std::shared_ptr<const Statements> statements_;
  std::vector<std::unique_ptr<Prepared>> prepared_;  // by number; gone after the handle
};

}  // namespace simba::mysql
