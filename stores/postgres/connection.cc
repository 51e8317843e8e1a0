#include "stores/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace simba::postgres {
namespace {

constexpr int kBinaryResult = 1;
constexpr int kOldestServer = 120'000;  // MATERIALIZED
constexpr int kMostReads = 8;           // of a server that was asked nothing: it has little to say

// What a statement may take in the server, of the time its call has left: more than it may wait for
// a row (three quarters), and less than all, so that the server's answer comes before the deadline.
milliseconds limit_for(nanoseconds left) {
  const auto limit = std::chrono::duration_cast<milliseconds>(left / 8 * 7);
  return std::clamp(limit, milliseconds{1}, milliseconds{1'000'000'000});
}

// Calls with about the same deadline, which most are, leave the limit as it is.
bool is_fitting(milliseconds limit, nanoseconds left) {
  return limit > left / 16 * 13 && limit < left / 16 * 15;
}

bool is_good(const Result& result) {
  const ExecStatusType status = PQresultStatus(result.get());
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

// The server says by this warning alone that what it has acknowledged is on no standby: somebody
// cancelled its wait. Its text depends on the language, the place in its source does not.
bool tells_of_no_standby(const PGresult* notice) {
  const char* const function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
  return function != nullptr && std::string_view(function) == "SyncRepWaitForLSN";
}

}  // namespace

Connection::Connection(Endpoint& endpoint, const kit::StopSignal& stop)
    : endpoint_(endpoint), connection_(connect_to_any(stop)) {
  PQsetErrorVerbosity(get(), PQERRORS_VERBOSE);
  PQsetNoticeReceiver(get(), hear, this);
  PQsetnonblocking(get(), 1);
  look_around(BootClock::now() + endpoint_.connect_timeout());
}

Connection::~Connection() = default;

Connection::Handle Connection::connect_to_any(const kit::StopSignal& stop) {
  if (endpoint_.options().connector) {
    Handle given(endpoint_.options().connector());
    if (given && PQstatus(given.get()) == CONNECTION_OK) return given;
    throw connect_failure(given ? PQerrorMessage(given.get()) : "the connector gave none",
                          endpoint_.where());
  }
  std::optional<Error> first;
  for (const Endpoint::Keywords& keywords : endpoint_.candidates()) {
    try {
      return connect_to(keywords, stop);
    } catch (const Error& error) {
      if (!first || (first->is_transient() && !error.is_transient())) first = error;
    }
  }
  throw Error(*first);
}

Connection::Handle Connection::connect_to(const Endpoint::Keywords& keywords,
                                          const kit::StopSignal& stop) {
  std::vector<const char*> names, values;
  for (const auto& [name, value] : keywords) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  const LocalTime deadline = BootClock::now() + endpoint_.connect_timeout();
  Handle opened(PQconnectStartParams(names.data(), values.data(), 0));
  if (!opened) {
    throw Error(Errc::kUnreachable,
                "postgres at " + endpoint_.where() + ": there is no memory left");
  }
  PQsetErrorVerbosity(opened.get(), PQERRORS_VERBOSE);
  PQsetNoticeReceiver(
      opened.get(), [](void*, const PGresult*) {}, nullptr);
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  while (PQstatus(opened.get()) != CONNECTION_BAD && wants != PGRES_POLLING_OK) {
    const auto events = static_cast<short>(wants == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    if (!kit::wait_for(PQsocket(opened.get()), events, deadline, &stop)) {
      throw Error(Errc::kUnreachable,
                  "postgres at " + endpoint_.where() + ": no connection within " +
                      std::to_string(endpoint_.connect_timeout().count()) +
                      " ms; is the address right, and does a firewall let it through?");
    }
    wants = PQconnectPoll(opened.get());
    if (wants == PGRES_POLLING_FAILED) break;
  }
  if (PQstatus(opened.get()) == CONNECTION_OK) return opened;
  throw connect_failure(PQerrorMessage(opened.get()), endpoint_.where());
}

void Connection::look_around(LocalTime deadline) {
  if (PQserverVersion(get()) < kOldestServer) {
    throw Error(Errc::kMisconfigured, "postgres at " + endpoint_.where() +
                                          ": the server has version " +
                                          std::to_string(PQserverVersion(get()) / 10'000) +
                                          "; this store needs 12 or newer");
  }
  const char* encoding = PQparameterStatus(get(), "server_encoding");
  const std::string_view name = encoding != nullptr ? encoding : "UTF8";
  if (name != "UTF8" && name != "SQL_ASCII") {
    throw Error(Errc::kMisconfigured, "postgres at " + endpoint_.where() +
                                          ": the database has the encoding " + std::string(name) +
                                          ", which cannot hold every name; use one with UTF8");
  }
  using Pooler = PostgresOptions::Pooler;
  const Pooler pooler = endpoint_.options().pooler;
  pooled_ = pooler == Pooler::kTransaction || endpoint_.is_behind_pooler();
  if (pooled_ || pooler == Pooler::kNone) return;
  // A pooler makes up the process id that it gives to its clients.
  const Result pid = execute("SELECT pg_backend_pid()::text", deadline);
  pooled_ = pid.text(0, 0) != std::to_string(PQbackendPID(get()));
  if (pooled_) endpoint_.note_pooler();
}

// Libpq takes an error that answers nothing for a notice.
void Connection::hear(void* connection, const PGresult* notice) {
  auto& self = *static_cast<Connection*>(connection);
  if (tells_of_no_standby(notice)) self.gave_up_standby_ = true;
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == nullptr) return;
  const std::string_view name = severity;
  if (name == "FATAL" || name == "PANIC") self.said_good_bye_ = true;
}

// The server says good-bye, if it can, when it closes a connection. Its words are read first, then
// their end, which may come later.
bool Connection::is_usable() noexcept {
  if (broken_ || PQstatus(get()) != CONNECTION_OK || PQtransactionStatus(get()) != PQTRANS_IDLE) {
    return false;
  }
  for (int reads = 0; kit::wait_for(PQsocket(get()), POLLIN, LocalTime{}); ++reads) {
    if (reads == kMostReads || PQconsumeInput(get()) != 1) return false;
    if (PQisBusy(get()) != 0 || said_good_bye_) return false;
  }
  return true;
}

Result Connection::run(const Statement& statement, const Parameters& parameters,
                       LocalTime deadline) {
  const nanoseconds left = deadline - BootClock::now();
  if (left <= nanoseconds::zero()) {
    throw Error(Errc::kTimeout, "postgres at " + endpoint_.where() +
                                    ": the deadline of the call passed; nothing was sent");
  }
  // Settings of the session behind a pooler are somebody else's.
  const bool limits = !pooled_ && !is_fitting(limit_, left);
  gave_up_standby_ = false;
  Result result = limits ? ask_limited(statement, parameters, deadline, limit_for(left))
                         : ask(statement, parameters, deadline);
  // A table that was there is not, or is another one: a new connection looks for it, or makes it.
  broken_ = broken_ || sql_state(result.get()).starts_with("42P01") ||
            sql_state(result.get()).starts_with("42703");
  check(result);
  check_kept();
  return result;
}

void Connection::send(const Statement& statement, const Parameters& parameters) {
  const int count = parameters.count();
  check_sent(pooled_
                 ? PQsendQueryParams(get(), statement.sql.c_str(), count, statement.types.data(),
                                     parameters.values(), parameters.lengths(),
                                     parameters.formats(), kBinaryResult)
                 : PQsendQueryPrepared(get(), statement.name, count, parameters.values(),
                                       parameters.lengths(), parameters.formats(), kBinaryResult));
}

Result Connection::ask(const Statement& statement, const Parameters& parameters,
                       LocalTime deadline) {
  send(statement, parameters);
  flush(deadline);
  return answer(deadline);
}

// A statement cannot limit its own time, but one before it in the same flight can. The two are one
// transaction: where the second fails, the limit is as it was.
Result Connection::ask_limited(const Statement& statement, const Parameters& parameters,
                               LocalTime deadline, milliseconds limit) {
  const std::string set =
      "SELECT set_config('statement_timeout', '" + std::to_string(limit.count()) + "', false)";
  if (PQenterPipelineMode(get()) != 1) fail_lost();
  check_sent(PQsendQueryParams(get(), set.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0));
  send(statement, parameters);
  Result result = finish_pipeline(deadline);
  if (is_good(result)) limit_ = limit;
  return result;
}

Result Connection::execute(const std::string& sql, LocalTime deadline) {
  check_sent(PQsendQuery(get(), sql.c_str()));
  flush(deadline);
  Result result = answer(deadline);
  check(result);
  return result;
}

void Connection::prepare(const std::string& settings, std::span<const Statement> statements,
                         LocalTime deadline) {
  if (PQenterPipelineMode(get()) != 1) fail_lost();
  check_sent(PQsendQueryParams(get(), settings.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0));
  for (const Statement& each : statements) {
    check_sent(PQsendPrepare(get(), each.name, each.sql.c_str(),
                             static_cast<int>(each.types.size()), each.types.data()));
  }
  check(finish_pipeline(deadline));
}

// The first error, or else the last answer.
Result Connection::finish_pipeline(LocalTime deadline) {
  check_sent(PQpipelineSync(get()));
  flush(deadline);
  Result last, error;
  while (true) {
    Result result(next(deadline), endpoint_.where());
    check_not_late(deadline);
    if (result.get() == nullptr) continue;  // between two answers
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (is_good(result)) {
      last = std::move(result);
    } else if (status == PGRES_FATAL_ERROR && error.get() == nullptr) {
      error = std::move(result);
      if (PQstatus(get()) != CONNECTION_OK) return error;
    }
  }
  if (PQexitPipelineMode(get()) != 1) fail_lost();
  return error.get() != nullptr ? std::move(error) : std::move(last);
}

void Connection::check_sent(int sent) {
  if (sent != 1) fail_lost();
}

void Connection::flush(LocalTime deadline) {
  while (true) {
    const int left = PQflush(get());
    if (left == 0) return;
    if (left < 0) fail_lost();
    // A server that answers before it has read all would block otherwise.
    if (!kit::wait_for(PQsocket(get()), POLLIN | POLLOUT, deadline)) fail_late();
    if (PQconsumeInput(get()) != 1) fail_lost();
  }
}

PGresult* Connection::next(LocalTime deadline) {
  while (PQisBusy(get()) != 0) {
    if (!kit::wait_for(PQsocket(get()), POLLIN, deadline)) fail_late();
    if (PQconsumeInput(get()) != 1) fail_lost();
    check_not_late(deadline);
  }
  return PQgetResult(get());
}

// An answer ends with nothing. Rows come before the commit: the error behind them counts.
Result Connection::answer(LocalTime deadline) {
  Result first(next(deadline), endpoint_.where());
  while (PGresult* const more = next(deadline)) {
    Result later(more, endpoint_.where());
    check_not_late(deadline);
    if (is_good(first)) first = std::move(later);
  }
  return first;
}

// Where nobody has to wait, nothing else ends the loop: a server may talk without an end.
void Connection::check_not_late(LocalTime deadline) {
  if (BootClock::now() >= deadline) fail_late();
}

void Connection::check(const Result& result) {
  if (is_good(result)) return;
  const std::string_view state = sql_state(result.get());
  if (state.empty()) fail_lost();
  broken_ = broken_ || breaks_connection(state);
  throw failure(result.get(), endpoint_.where(), endpoint_.table());
}

void Connection::check_kept() const {
  if (!gave_up_standby_) return;
  throw Error(Errc::kTimeout, "postgres at " + endpoint_.where() +
                                  ": somebody cancelled the server's wait for its synchronous "
                                  "standby; a failover may forget what the server has done");
}

void Connection::fail_lost() {
  broken_ = true;
  throw lost(get(), endpoint_.where());
}

void Connection::fail_late() {
  broken_ = true;
  throw Error(Errc::kTimeout, "postgres at " + endpoint_.where() +
                                  ": no answer before the deadline; whether the server acted is "
                                  "unknown");
}

}  // namespace simba::postgres
