#include "stores/postgres/schema.h"

#include <algorithm>
#include <array>

namespace simba::postgres {
namespace {

constexpr std::string_view kDenied = "42501";
constexpr std::string_view kToken = "fencing_token";
constexpr std::array<std::string_view, 7> kColumns{
    "mutex", "acquired_at", "ttl_at", "transition_at", "owner_id", "version", kToken};
// Two that make the table at once: a duplicate table, its type, or a key of the catalog.
constexpr std::array<std::string_view, 3> kExists{"42P07", "42710", "23505"};

// The limits here stand behind those of each call (Connection::run): they hold while a connection
// is prepared. A server of version 14 looks whether we are still there, where its system can tell:
// elsewhere it refuses to be asked for it, and on which it runs only its version() says.
std::string session_settings(int server_version) {
  std::string sql =
      "SELECT set_config('statement_timeout', '30000', false),"
      " set_config('lock_timeout', '10000', false),"
      " set_config('default_transaction_isolation', 'read committed', false),"
      " set_config('plan_cache_mode', 'force_generic_plan', false)";
  if (server_version >= 140'000) {
    sql +=
        ", CASE WHEN version() LIKE '%linux%'"
        " THEN set_config('client_connection_check_interval', '1000', false) END";
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

// Names, types, whether the column alone is unique, and whether it is equal only to the same bytes.
std::string columns_sql(const std::string& quoted_table) {
  return "SELECT a.attname::text, format_type(a.atttypid, NULL), EXISTS (SELECT FROM pg_index i"
         " WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indpred IS NULL"
         " AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)::text,"
         " coalesce((SELECT c.collisdeterministic FROM pg_collation c"
         " WHERE c.oid = a.attcollation), true)::text"
         " FROM pg_attribute a WHERE a.attrelid = to_regclass('" +
         quoted_table + "') AND a.attnum > 0 AND NOT a.attisdropped";
}

[[noreturn]] void refuse(const Endpoint& endpoint, const std::string& why) {
  throw Error(Errc::kMisconfigured, "postgres at " + endpoint.where() + ": the table " +
                                        endpoint.quoted_table() + ' ' + why);
}

constexpr const char* kOtherTable =
    ": it is another table, or a broken one; docs/postgres.md has the columns";

bool is_fitting(std::string_view column, std::string_view type) {
  const bool is_text = column == "mutex" || column == "owner_id";
  return is_text ? type == "character varying" || type == "text"  // not character, which is padded
                 : type == "bigint" || (column == "version" && type == "integer");
}

}  // namespace

std::string add_token_sql(const std::string& quoted_table) {
  return "ALTER TABLE " + quoted_table +
         " ADD COLUMN IF NOT EXISTS fencing_token bigint NOT NULL DEFAULT 0";
}

TableState look_at_table(Connection& connection, LocalTime deadline) {
  const Endpoint& endpoint = connection.endpoint();
  const Result found = connection.execute(columns_sql(endpoint.quoted_table()), deadline);
  if (found.rows() == 0) return TableState::kMissing;
  const auto row_of = [&](std::string_view name) {
    int row = 0;
    while (row < found.rows() && found.text(row, 0) != name) ++row;
    return row;
  };
  for (const std::string_view name : kColumns) {
    const int row = row_of(name);
    if (row == found.rows() && name == kToken) continue;
    if (row == found.rows()) {
      refuse(endpoint, "has no column " + std::string(name) + kOtherTable);
    }
    if (!is_fitting(name, found.text(row, 1))) {
      refuse(endpoint, "has a column " + std::string(name) + " of the type " +
                           std::string(found.text(row, 1)) + kOtherTable);
    }
    if (found.text(row, 3) != "true") {
      refuse(endpoint, "takes other names for the same in its column " + std::string(name) +
                           " (its collation is not deterministic): run ALTER TABLE " +
                           endpoint.quoted_table() + " ALTER COLUMN " + std::string(name) +
                           " TYPE varchar(" + (name == "mutex" ? "66" : "128") + ") COLLATE \"C\"");
    }
  }
  if (found.text(row_of("mutex"), 2) != "true") {
    refuse(endpoint, "may hold a mutex twice: run ALTER TABLE " + endpoint.quoted_table() +
                         " ADD PRIMARY KEY (mutex)");
  }
  return row_of(kToken) == found.rows() ? TableState::kLacksToken : TableState::kReady;
}

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
