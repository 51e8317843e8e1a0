#include "stores/mysql/schema.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace simba::mysql {
namespace {

constexpr std::array<std::string_view, 6> kOldColumns{"mutex",         "acquired_at", "ttl_at",
                                                      "transition_at", "owner_id",    "version"};
constexpr std::string_view kToken = "fencing_token";
constexpr std::size_t kOwnerLength = 128;

// What the server may show less of than there is: rows, and a table's engine.
constexpr const char* kShowAll =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES', sql_select_limit = 18446744073709551615;";

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

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return out;
}

// information_schema would open every table of the server.
std::string find_sql(const Endpoint& endpoint) {
  return kShowAll + ("SHOW FULL COLUMNS FROM " + endpoint.quoted_table()) + ";SHOW CREATE TABLE " +
         endpoint.quoted_table();
}

// "varchar(128)"
std::size_t length_in(std::string_view type) {
  std::size_t length = 0;
  const std::size_t open = type.find('(');
  if (open != type.npos) {
    std::from_chars(type.data() + open + 1, type.data() + type.size(), length);
  }
  return length;
}

FoundTable read_table(Result& columns, Result& definition) {
  FoundTable table;
  while (columns.next()) {
    FoundTable::Column column;
    column.name = lower(columns.text(0));
    column.length = length_in(columns.text(1));
    if (!columns.is_null(2)) {
      const std::string collation(columns.text(2));
      column.text = {collation.substr(0, collation.find('_')), collation};
    }
    column.is_key = columns.text(4) == "PRI";
    table.columns.push_back(std::move(column));
  }
  if (definition.next()) {
    const std::string text = lower(definition.text(1));
    table.has_primary_key = text.find("primary key (`mutex`)") != text.npos;
    const std::size_t at = text.find("engine=");
    if (at != text.npos) table.engine = text.substr(at + 7, text.find_first_of(" \n", at) - at - 7);
  }
  return table;
}

[[noreturn]] void refuse(const Endpoint& endpoint, const std::string& why) {
  throw Error(Errc::kMisconfigured, "mysql at " + endpoint.where() + ": the table " +
                                        endpoint.quoted_table() + ' ' + why);
}

bool is_old(const FoundTable& table) { return table.column(kToken) == nullptr; }

// Whatever else is wrong, it is a table of ours.
void check_names(const Endpoint& endpoint, const FoundTable& table) {
  for (const std::string_view name : kOldColumns) {
    if (table.column(name) == nullptr) {
      refuse(endpoint, "has no column " + std::string(name) +
                           ": it is another table, or a broken one; docs/mysql.md has the columns");
    }
  }
}

void check_columns(const Endpoint& endpoint, const FoundTable& table) {
  check_names(endpoint, table);
  if (table.engine != "innodb") {
    refuse(endpoint, "is of the engine " + (table.engine.empty() ? "(none)" : table.engine) +
                         ", which cannot lock a row nor survive a crash: run ALTER TABLE " +
                         endpoint.quoted_table() + " ENGINE = InnoDB");
  }
  if (!table.column("mutex")->is_key) {
    refuse(endpoint, "may hold a mutex twice: run ALTER TABLE " + endpoint.quoted_table() +
                         " ADD PRIMARY KEY (mutex)");
  }
  const bool is_exact =
      std::equal(kOldColumns.begin(), kOldColumns.end(), table.columns.begin(), table.columns.end(),
                 [](std::string_view name, const auto& column) { return name == column.name; });
  if (is_old(table) && !is_exact) {
    refuse(endpoint, "has neither tokens nor exactly the columns of JVM Simba: run " +
                         upgrade_sql(endpoint, table));
  }
}

Shape shape_of(const Connection& connection, const FoundTable& table) {
  Shape shape;
  shape.is_mariadb = connection.speaks_mariadb();
  shape.as_the_server_reads = connection.as_the_server_reads();
  shape.mutex = table.column("mutex")->text;
  shape.owner = table.column("owner_id")->text;
  shape.owner_length = table.column("owner_id")->length;
  shape.has_token = !is_old(table);
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
          (is_old(table)
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

const FoundTable::Column* FoundTable::column(std::string_view name) const {
  const auto it = std::find_if(columns.begin(), columns.end(),
                               [&](const Column& each) { return each.name == name; });
  return it == columns.end() ? nullptr : &*it;
}

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

std::string upgrade_sql(const Endpoint& endpoint, const FoundTable& table) {
  std::string changes;
  const auto add = [&](const std::string& change) {
    changes += (changes.empty() ? " " : ", ") + change;
  };
  if (table.engine != "innodb") add("ENGINE = InnoDB");
  const FoundTable::Column* owner = table.column("owner_id");
  if (owner != nullptr && owner->length < kOwnerLength) {
    const std::string type = owner->text.is_binary()
                                 ? "VARBINARY(128)"
                                 : "VARCHAR(128) CHARACTER SET " + owner->text.charset +
                                       " COLLATE " + owner->text.collation;
    add("MODIFY owner_id " + type + " NOT NULL");
  }
  if (is_old(table)) add("ADD COLUMN fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0");
  return changes.empty() ? "" : "ALTER TABLE " + endpoint.quoted_table() + changes + ';';
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
    refuse(connection.endpoint(), "was made, and is not there");
  }
}

void prepare_to_look(Connection& connection, LocalTime deadline) {
  if (adopt_table(connection, deadline, session_settings(connection))) return;
  refuse(connection.endpoint(), "is missing, or cannot be seen: run simba init");
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
