#include "stores/postgres/administration.h"
#include "stores/postgres/schema.h"

namespace simba::postgres {
namespace {

using Verdict = Finding::Verdict;

constexpr milliseconds kPatience{10'000};

Finding look_at_server(const Connection& connection) {
  const char* version = PQparameterStatus(connection.get(), "server_version");
  return {"server", Verdict::kOk,
          "PostgreSQL " + std::string(version != nullptr ? version : "of an unknown version") +
              " at " + connection.endpoint().where() + ", as " + PQuser(connection.get())};
}

Finding judge_table(Connection& connection, LocalTime deadline) {
  const std::string& table = connection.endpoint().quoted_table();
  try {
    switch (look_at_table(connection, deadline)) {
      case TableState::kMissing:
        return {"table", Verdict::kFailed, table + " is missing: run simba init"};
      case TableState::kLacksToken:
        return {"table", Verdict::kFailed, table + " is an old one: run simba init"};
      case TableState::kReady:
        break;
    }
    return {"table", Verdict::kOk, table + " has all its columns"};
  } catch (const Error& error) {
    return {"table", Verdict::kFailed, error.what()};
  }
}

// Writes, and takes it back.
Finding try_rights(Connection& connection, LocalTime deadline) {
  const std::string& table = connection.endpoint().quoted_table();
  const std::string name = "'simba-doctor-' || pg_backend_pid()";
  try {
    connection.execute("BEGIN", deadline);
    connection.execute("INSERT INTO " + table +
                           " (mutex, acquired_at, ttl_at, transition_at, owner_id, version)"
                           " VALUES (" +
                           name + ", 0, 0, 0, '', 0)",
                       deadline);
    connection.execute("UPDATE " + table + " SET version = version + 1 WHERE mutex = " + name,
                       deadline);
    connection.execute("ROLLBACK", deadline);
    return {"rights", Verdict::kOk, "may contend"};
  } catch (const Error& error) {
    return {"rights", Verdict::kFailed, std::string("may not contend: ") + error.what()};
  }
}

}  // namespace

Inspection inspect(std::string_view url) {
  Endpoint endpoint(postgres_options(url));
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  const LocalTime deadline = BootClock::now() + kPatience;
  Inspection seen;
  seen.tells_wall_time = true;
  seen.findings.push_back(look_at_server(connection));
  seen.findings.push_back(judge_table(connection, deadline));
  if (seen.findings.back().verdict == Verdict::kOk) {
    seen.findings.push_back(try_rights(connection, deadline));
  }
  return seen;
}

}  // namespace simba::postgres
