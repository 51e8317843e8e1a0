#pragma once

#include <libpq-fe.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simba/time.h"
#include "stores/kit/pool.h"
#include "stores/kit/worker.h"
#include "stores/postgres/endpoint.h"
#include "stores/postgres/failure.h"
#include "stores/postgres/parameters.h"
#include "stores/postgres/result.h"

namespace simba::postgres {

// A statement of ours; its name is that of the prepared one.
struct Statement {
  const char* name;
  std::string sql;
  std::vector<unsigned> types;  // of the parameters
};

// One connection, with deadlines: libpq's asynchronous calls and poll().
//
// Threads: one at a time. Errors: Error, see failure.h. After a deadline that passed, and after
// some errors, it is not usable any more.
class Connection : public kit::Pooled {
 public:
  // Connects, blocking: names are resolved without a deadline.
  Connection(Endpoint& endpoint, const kit::StopSignal& stop);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  bool is_usable() noexcept override;
  // A pooler answers: nothing of a session lasts from one statement to the next.
  bool is_pooled() const noexcept { return pooled_; }

  // The server ends the statement before the deadline, unless a pooler is in between.
  Result run(const Statement& statement, const Parameters& parameters, LocalTime deadline);
  Result execute(const std::string& sql, LocalTime deadline);
  // Settings of the session and statements to come, in one round trip.
  void prepare(const std::string& settings, std::span<const Statement> statements,
               LocalTime deadline);

  PGconn* get() const noexcept { return connection_.get(); }
  const Endpoint& endpoint() const noexcept { return endpoint_; }
  // The connection broke: call this instead of using it on.
  [[noreturn]] void fail_lost();

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  using Handle = std::unique_ptr<PGconn, Finish>;

  static void hear(void* connection, const PGresult* notice);
  Handle connect_to(const Endpoint::Keywords& keywords, const kit::StopSignal& stop);
  Handle connect_to_any(const kit::StopSignal& stop);
  void look_around(LocalTime deadline);
  void send(const Statement& statement, const Parameters& parameters);
  Result ask(const Statement& statement, const Parameters& parameters, LocalTime deadline);
  Result ask_limited(const Statement& statement, const Parameters& parameters, LocalTime deadline,
                     milliseconds limit);
  Result finish_pipeline(LocalTime deadline);
  void check_sent(int sent);
  void flush(LocalTime deadline);
  PGresult* next(LocalTime deadline);
  Result answer(LocalTime deadline);
  void check_not_late(LocalTime deadline);
  void check(const Result& result);
  void check_kept() const;
  [[noreturn]] void fail_late();

  Endpoint& endpoint_;
  Handle connection_;
  milliseconds limit_{};  // statement_timeout as run() has set it; 0: not yet
  bool pooled_ = false;
  bool broken_ = false;
  bool gave_up_standby_ = false;  // the server did, in the call under way
  bool said_good_bye_ = false;    // by the server
};

}  // namespace simba::postgres
