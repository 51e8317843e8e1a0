#include "stores/mysql/schema.h"

namespace simba::mysql {
namespace {

// What the server may show less of than there is: rows, a table's engine, and where a name ends.
constexpr const char* kShowAll =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES', sql_select_limit = 18446744073709551615,"
    " sql_quote_show_create = 1;";

// Names and ids are UTF-8, whatever the connector or the server would rather speak. In UTC there is
// no hour twice. The limits stand behind the ones each statement carries: where a
// lock is on the whole table, and where the server does not limit statements. There a row is waited
// for one second, the least there is. Whoever sleeps at the bell is not woken by a limit that
// somebody has set for everybody.
std::string session_settings(const Connection& connection) {
  return "SET NAMES utf8mb4;SET SESSION time_zone = '+00:00', autocommit = 1,"
         " lock_wait_timeout = 10, " +
         connection.as_the_server_reads() +
         ", innodb_lock_wait_timeout = " + (connection.speaks_mariadb() ? "10" : "1") +
         (connection.is_mariadb() ? ", max_statement_time = 30" : ", max_execution_time = 30000") +
         ";SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;";
}

// information_schema would open every table of the server.
std::string find_sql(const Endpoint& endpoint) {
  return kShowAll + ("SHOW FULL COLUMNS FROM " + endpoint.quoted_table()) + ";SHOW CREATE TABLE " +
         endpoint.quoted_table();
}

Shape shape_of(const Connection& connection, const FoundTable& table) {
  Shape shape;
  shape.is_mariadb = connection.speaks_mariadb();
  shape.as_the_server_reads = connection.as_the_server_reads();
  shape.mutex = table.column("mutex")->text;
  shape.owner = table.column("owner_id")->text;
  shape.owner_length = table.column("owner_id")->length;
  shape.has_token = !table.is_old();
  shape.has_primary_key = table.has_primary_key;
  return shape;
}

void note_old(Endpoint& endpoint, const FoundTable& table) {
  const std::string upgrade = upgrade_sql(endpoint, table);
  if (upgrade.empty()) return;
  const std::size_t length = table.column("owner_id")->length;
  endpoint.note_once(
      Endpoint::Note::kOldTable,
      "the table " + endpoint.quoted_table() + " is of an older kind: ids have at most " +
          std::to_string(length) + " characters" +
          (table.is_old()
               ? ", and fencing tokens are its versions, which start anew with a row that "
                 "was deleted"
               : "") +
          ". To bring it up to date, also while contenders run: " + upgrade);
}

std::string user_of(Connection& connection, LocalTime deadline) {
  Result answer = connection.query("SELECT CURRENT_USER()", deadline);
  return answer.next() ? std::string(answer.text(0)) : "the user";
}

void create_table(Connection& connection, LocalTime deadline) {
  Endpoint& endpoint = connection.endpoint();
  try {
    connection.query(create_table_sql(endpoint), deadline);
    endpoint.log(LogLevel::kInfo, "made the table " + endpoint.quoted_table());
  } catch (const Failure& error) {
    if (error.errc() != Errc::kDenied) throw;
    throw Error(Errc::kDenied,
                "mysql at " + endpoint.where() + ": the table " + endpoint.quoted_table() +
                    " is missing, or the user " + user_of(connection, deadline) +
                    " may neither see nor make it. As somebody who may: " +
                    create_table_sql(endpoint) + " GRANT SELECT, INSERT, UPDATE ON " +
                    endpoint.quoted_table() + " TO the user; (" + error.what() + ')');
  }
}

}  // namespace

std::string create_database_sql(const Endpoint& endpoint) {
  return "CREATE DATABASE IF NOT EXISTS " + endpoint.quoted_database() + ';';
}

std::string create_table_sql(const Endpoint& endpoint) {
  return "CREATE TABLE IF NOT EXISTS " + endpoint.quoted_table() +
         " (mutex VARBINARY(66) NOT NULL PRIMARY KEY,"
         " acquired_at BIGINT UNSIGNED NOT NULL,"
         " ttl_at BIGINT UNSIGNED NOT NULL,"
         " transition_at BIGINT UNSIGNED NOT NULL,"
         " owner_id VARBINARY(128) NOT NULL,"
         " version INT UNSIGNED NOT NULL,"
         " fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0) ENGINE = InnoDB;";
}

std::optional<FoundTable> find_table(Connection& connection, LocalTime deadline,
                                     const std::string& before) {
  try {
    std::vector<Result> answers =
        connection.query_all(before + find_sql(connection.endpoint()), deadline);
    return read_table(answers.at(answers.size() - 2), answers.back());
  } catch (const Failure& error) {
    if (!error.is(number::kMissingTable) && !error.is(number::kUnknownDatabase)) throw;
    connection.mend();
    return {};
  }
}

bool check_table(Connection& connection, LocalTime deadline) {
  const std::optional<FoundTable> table = find_table(connection, deadline);
  if (table) check_columns(connection.endpoint(), *table);
  return table.has_value();
}

namespace {

// False: it is not there.
bool adopt_table(Connection& connection, LocalTime deadline, const std::string& before = {}) {
  Endpoint& endpoint = connection.endpoint();
  const std::optional<FoundTable> table = find_table(connection, deadline, before);
  if (!table) return false;
  check_columns(endpoint, *table);
  note_old(endpoint, *table);
  connection.set_statements(
      std::make_shared<const Statements>(endpoint, shape_of(connection, *table)));
  return true;
}

}  // namespace

void prepare_connection(Connection& connection, LocalTime deadline) {
  if (adopt_table(connection, deadline, session_settings(connection))) return;
  create_table(connection, deadline);
  if (!adopt_table(connection, deadline)) {
    refuse_table(connection.endpoint(), "was made, and is not there");
  }
}

void prepare_to_look(Connection& connection, LocalTime deadline) {
  if (adopt_table(connection, deadline, session_settings(connection))) return;
  refuse_table(connection.endpoint(), "is missing, or cannot be seen: run simba init");
}

}  // namespace simba::mysql

namespace simba::inline v0 {

std::string mysql_schema(const MysqlOptions& options) {
  const mysql::Endpoint endpoint(options);
  return mysql::create_database_sql(endpoint) + '\n' + mysql::create_table_sql(endpoint) + '\n';
}

namespace {

// For those who use the table: behind a change that waits, every claim waits too. Longer than the
// doorbell sleeps.
constexpr const char* kLimitChanges = "SET SESSION lock_wait_timeout = 5";

// Throws what somebody can do about it.
void run_change(mysql::Connection& connection, const std::string& sql, LocalTime deadline) try {
  connection.query(sql, deadline);
} catch (const mysql::Failure& error) {
  if (error.errc() == Errc::kDenied) {
    throw Error(Errc::kDenied, std::string(error.what()) + ". As somebody who may, run: " + sql);
  }
  if (!error.is(mysql::number::kLockWait)) throw;
  throw Error(
      Errc::kTimeout,
      "mysql at " + connection.endpoint().where() + ": the table " +
          connection.endpoint().quoted_table() +
          " was in use for 5 s without a break, by a transaction that stays open, and is as "
          "it was. Longer waits would hold up every contender: end that transaction "
          "(information_schema.INNODB_TRX tells whose it is) and run this again");
}

}  // namespace

std::string create_mysql_table(const MysqlOptions& options) {
  mysql::Endpoint endpoint(options);
  const kit::StopSignal never;
  mysql::Connection connection(endpoint, never, mysql::Connection::Database::kNone);
  // An ALTER may have to copy the table.
  const LocalTime deadline = BootClock::now() + std::chrono::minutes(10);
  std::string ran;
  const auto run = [&](const std::string& sql) {
    run_change(connection, sql, deadline);
    ran += sql + '\n';
  };
  connection.query(kLimitChanges, deadline);
  std::optional<mysql::FoundTable> table = mysql::find_table(connection, deadline);
  // Somebody else's table of that name gets no column of ours.
  if (table) mysql::check_names(endpoint, *table);
  if (!table) {
    mysql::Result database =
        connection.query("SHOW DATABASES WHERE `Database` = '" + options.database + '\'', deadline);
    if (!database.next()) run(mysql::create_database_sql(endpoint));
    run(mysql::create_table_sql(endpoint));
  } else if (const std::string upgrade = mysql::upgrade_sql(endpoint, *table); !upgrade.empty()) {
    run(upgrade);
  }
  mysql::check_table(connection, deadline);
  return ran;
}

}  // namespace simba::inline v0
