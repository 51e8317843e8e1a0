#include "stores/mysql/administration.h"
#include "stores/mysql/schema.h"

namespace simba::mysql {
namespace {

using Verdict = Finding::Verdict;

constexpr milliseconds kPatience{10'000};

Finding look_at_server(Connection& connection, LocalTime deadline) {
  Result answer = connection.query("SELECT VERSION(), CURRENT_USER()", deadline);
  if (!answer.next()) refuse_answer(connection.endpoint().where(), "has no version");
  return {"server", Verdict::kOk,
          std::string(connection.speaks_mariadb() ? "MariaDB " : "MySQL ") +
              std::string(answer.text(0)) + " at " + connection.endpoint().where() + ", as " +
              std::string(answer.text(1))};
}

Finding judge_table(Connection& connection, LocalTime deadline) {
  const std::string& table = connection.endpoint().quoted_table();
  try {
    if (check_table(connection, deadline)) {
      return {"table", Verdict::kOk, table + " has all its columns"};
    }
    return {"table", Verdict::kFailed, table + " is missing, or cannot be seen: run simba init"};
  } catch (const Error& error) {
    return {"table", Verdict::kFailed, error.what()};
  }
}

// Writes, and takes it back.
Finding try_rights(Connection& connection, LocalTime deadline) {
  const std::string& table = connection.endpoint().quoted_table();
  try {
    connection.query("START TRANSACTION;INSERT INTO " + table +
                         " (mutex, acquired_at, ttl_at, transition_at, owner_id, version)"
                         " VALUES (CONCAT('simba-doctor-', CONNECTION_ID()), 0, 0, 0, '', 0);"
                         "UPDATE " +
                         table +
                         " SET version = version + 1"
                         " WHERE mutex = CONCAT('simba-doctor-', CONNECTION_ID());ROLLBACK",
                     deadline);
    return {"rights", Verdict::kOk, "may contend"};
  } catch (const Error& error) {
    return {"rights", Verdict::kFailed,
            std::string("may look, but not contend: ") + error.what() +
                ". As somebody who may: GRANT SELECT, INSERT, UPDATE ON " + table + " TO the user"};
  }
}

}  // namespace

Inspection inspect(std::string_view url) {
  Endpoint endpoint(mysql_options(url));
  const kit::StopSignal never;
  Connection connection(endpoint, never, Connection::Database::kNone);
  const LocalTime deadline = BootClock::now() + kPatience;
  Inspection seen;
  seen.tells_wall_time = true;
  seen.findings.push_back(look_at_server(connection, deadline));
  seen.findings.push_back(judge_table(connection, deadline));
  if (seen.findings.back().verdict == Verdict::kOk) {
    seen.findings.push_back(try_rights(connection, deadline));
  }
  return seen;
}

}  // namespace simba::mysql
