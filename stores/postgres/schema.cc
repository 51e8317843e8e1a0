#include "stores/postgres/schema.h"

#include <algorithm>
#include <array>

namespace simba::postgres {
namespace {

constexpr std::string_view kDenied = "42501";
// Two that make the table at once: a duplicate table, its type, or a key of the catalog.
constexpr std::array<std::string_view, 3> kExists{"42P07", "42710", "23505"};

// The limits here stand behind the ones each statement carries: a lock on the whole table is waited
// for before a statement can say anything. A server of version 14 looks whether we are still there.
std::string session_settings(int server_version) {
  std::string sql =
      "SELECT set_config('statement_timeout', '30000', false),"
      " set_config('lock_timeout', '10000', false),"
      " set_config('default_transaction_isolation', 'read committed', false),"
      " set_config('plan_cache_mode', 'force_generic_plan', false),"
      // What was acknowledged must survive a crash of the server.
      " CASE WHEN current_setting('synchronous_commit') = 'off'"
      " THEN set_config('synchronous_commit', 'on', false) END";
  if (server_version >= 140'000) {
    sql += ", set_config('client_connection_check_interval', '1000', false)";
  }
  return sql;
}

void create_table(Connection& connection, LocalTime deadline) {
  const Endpoint& endpoint = connection.endpoint();
  try {
    connection.execute(create_table_sql(endpoint.quoted_table()), deadline);
    endpoint.log(LogLevel::kInfo,
                 "postgres at " + endpoint.where() + ": made the table " + endpoint.quoted_table());
  } catch (const Failure& error) {
    if (std::find(kExists.begin(), kExists.end(), error.state()) != kExists.end()) return;
    if (!error.is(kDenied)) throw;
    const std::string role = PQuser(connection.get());
    throw Error(Errc::kDenied, "postgres at " + endpoint.where() + ": the table " +
                                   endpoint.quoted_table() + " is missing, and the role \"" + role +
                                   "\" may not make it. As somebody who may: " +
                                   create_table_sql(endpoint.quoted_table()) +
                                   "; GRANT SELECT, INSERT, UPDATE ON " + endpoint.quoted_table() +
                                   " TO \"" + role + '"');
  }
}

void prepare_once(Connection& connection, std::span<const Statement> statements,
                  LocalTime deadline) {
  if (connection.is_pooled()) {
    connection.execute("SELECT FROM " + connection.endpoint().quoted_table() + " LIMIT 0",
                       deadline);
  } else {
    connection.prepare(session_settings(PQserverVersion(connection.get())), statements, deadline);
  }
}

}  // namespace

std::string create_table_sql(const std::string& quoted_table) {
  // Half of each page stays free for new versions of its rows: they then need no new index entry.
  return "CREATE TABLE IF NOT EXISTS " + quoted_table +
         " (mutex varchar(66) COLLATE \"C\" NOT NULL PRIMARY KEY,"
         " acquired_at bigint NOT NULL,"
         " ttl_at bigint NOT NULL,"
         " transition_at bigint NOT NULL,"
         " owner_id varchar(128) COLLATE \"C\" NOT NULL,"
         " version bigint NOT NULL,"
         " fencing_token bigint NOT NULL DEFAULT 0)"
         " WITH (fillfactor = 50)";
}

void prepare_connection(Connection& connection, std::span<const Statement> statements,
                        LocalTime deadline) {
  try {
    return prepare_once(connection, statements, deadline);
  } catch (const Failure& error) {
    if (!error.is(SqlState::kMissingTable)) throw;
  }
  create_table(connection, deadline);
  if (!connection.is_pooled()) connection.execute("DEALLOCATE ALL", deadline);
  prepare_once(connection, statements, deadline);
}

}  // namespace simba::postgres
