// What a MySQL server says of the table: SHOW FULL COLUMNS and SHOW CREATE TABLE. What is believed
// of it becomes part of statements.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/mysql/found_table.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

namespace mysql = simba::mysql;

struct Row {
  std::vector<std::optional<std::string>> values;
  std::vector<char*> texts;
  std::vector<unsigned long> lengths;
};
// What the driver would have read from a connection.
struct Rows {
  std::vector<Row> rows;
  std::size_t next = 0;
};
std::map<MYSQL_RES*, Rows> all;

std::optional<std::string> value(simba::fuzz::Input& input) {
  constexpr const char* kUsual[] = {"mutex",
                                    "acquired_at",
                                    "ttl_at",
                                    "transition_at",
                                    "version",
                                    "owner_id",
                                    "fencing_token",
                                    "varchar(128)",
                                    "PRI",
                                    "utf8mb4_general_ci",
                                    "bigint(20)",
                                    "varbinary(66)",
                                    "NO",
                                    "latin1_swedish_ci",
                                    "ENGINE=InnoDB ",
                                    "\n  PRIMARY KEY (`mutex`)\n) ENGINE=InnoDB"};
  switch (input.in_range(0, 9)) {
    case 0:
      return std::nullopt;
    case 1:
      return input.text(60);
    default:
      return kUsual[input.in_range<std::size_t>(0, std::size(kUsual) - 1)];
  }
}

// A good one, of which the fuzzer spoils what it likes: by chance alone there would be none.
Rows columns(simba::fuzz::Input& input) {
  Rows found;
  for (const char* name : {"mutex", "acquired_at", "ttl_at", "transition_at", "owner_id", "version",
                           "fencing_token"}) {
    Row row;
    const bool is_text = name == std::string_view("owner_id");
    row.values = {name, is_text ? "varchar(100)" : "bigint(20)", std::nullopt, "NO",
                  name == std::string_view("mutex") ? "PRI" : ""};
    if (is_text) row.values[2] = "utf8mb4_bin";
    for (auto& each : row.values) {
      if (input.in_range(0, 15) == 1) each = value(input);
    }
    if (input.in_range(0, 15) == 1) row.values.resize(input.in_range<std::size_t>(1, 9));
    if (input.in_range(0, 15) != 1) found.rows.push_back(std::move(row));
  }
  return found;
}

Rows definition(simba::fuzz::Input& input) {
  Rows found;
  if (input.in_range(0, 15) == 1) return found;
  const char* usual = "CREATE TABLE `t` (\n  PRIMARY KEY (`mutex`)\n) ENGINE=InnoDB DEFAULT";
  found.rows.push_back({{"t", input.flip() ? input.rest() : usual}, {}, {}});
  return found;
}

mysql::Result result_of(MYSQL_RES& handle, Rows rows) {
  Rows& own = all[&handle] = std::move(rows);
  for (Row& row : own.rows) {
    for (auto& each : row.values) {
      row.texts.push_back(each ? each->data() : nullptr);
      row.lengths.push_back(each ? each->size() : 0);
    }
  }
  return {&handle, 0, 0, "a server"};
}

simba::MysqlOptions options() {
  simba::MysqlOptions options;
  options.hosts = {{"db.example", 3306}};
  options.database = "simba_db";
  return options;
}

void check_usable(const mysql::FoundTable& table, std::string definition) {
  require(table.engine == "innodb", "an engine that locks rows");
  std::transform(definition.begin(), definition.end(), definition.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  require(definition.find("key") < definition.rfind(" (`mutex`)") &&
              definition.rfind(" (`mutex`)") != definition.npos,
          "a mutex is there once");
  require(table.column("owner_id") != nullptr && table.column("transition_at") != nullptr,
          "the columns are there");
}

// The server's words in it are no more than words.
void check_statement(const std::string& sql, const std::string& table) {
  if (sql.empty()) return;
  require(sql.starts_with("ALTER TABLE " + table + ' '), "it changes this table");
  require(std::count(sql.begin(), sql.end(), ';') == 1 && sql.back() == ';', "and does no more");
  require(std::all_of(sql.begin() + static_cast<std::ptrdiff_t>(12 + table.size()), sql.end() - 1,
                      [](char c) {
                        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                               std::string_view("_ ,()=").find(c) != std::string_view::npos;
                      }),
          "and quotes nothing");
}

}  // namespace

// In place of the driver's, so that what reads its rows is the store's own.
extern "C" {
MYSQL_ROW mysql_fetch_row(MYSQL_RES* result) {
  Rows& rows = all.at(result);
  return rows.next < rows.rows.size() ? rows.rows[rows.next++].texts.data() : nullptr;
}
unsigned long* mysql_fetch_lengths(MYSQL_RES* result) {
  return all.at(result).rows.at(all.at(result).next - 1).lengths.data();
}
unsigned int mysql_num_fields(MYSQL_RES* res) {
  return static_cast<unsigned>(all.at(res).rows.at(all.at(res).next - 1).values.size());
}
void mysql_free_result(MYSQL_RES*) {}
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mysql::Endpoint endpoint(options());
  simba::fuzz::Input input(data, size);
  MYSQL_RES first{}, second{};  // nobody looks into them
  mysql::Result rows = result_of(first, columns(input));
  Rows told = definition(input);
  const std::string text = told.rows.empty() ? "" : told.rows[0].values[1].value_or("");
  mysql::Result shown = result_of(second, std::move(told));
  mysql::FoundTable table;
  if (!accepts<simba::Error>([&] { table = mysql::read_table(rows, shown); })) return 0;
  check_statement(mysql::upgrade_sql(endpoint, table), endpoint.quoted_table());
  if (accepts<simba::Error>([&] { mysql::check_columns(endpoint, table); })) {
    check_usable(table, text);
  }
  return 0;
}
