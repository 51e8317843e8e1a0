#include "stores/postgres/administration.h"

#include "stores/postgres/schema.h"

namespace simba::postgres {
namespace {

// Of "schema"."table"; empty where the search path decides.
std::string create_schema_sql(const std::string& quoted_table) {
  const std::size_t dot = quoted_table.find("\".\"");
  if (dot == quoted_table.npos) return {};
  return "CREATE SCHEMA IF NOT EXISTS " + quoted_table.substr(0, dot + 1) + ";\n";
}

std::string usage_sql(const std::string& quoted_table, const std::string& role) {
  const std::size_t dot = quoted_table.find("\".\"");
  if (dot == quoted_table.npos) return {};
  return "-- GRANT USAGE ON SCHEMA " + quoted_table.substr(0, dot + 1) + " TO " + role + ";\n";
}

std::string told(const std::string& table) {
  return create_schema_sql(table) + create_table_sql(table) +
         ";\n-- A contender needs this and no more:\n" + usage_sql(table, "contender") +
         "-- GRANT SELECT, INSERT, UPDATE ON " + table +
         " TO contender;\n-- Who only looks (ls, show, watch):\n" + usage_sql(table, "observer") +
         "-- GRANT SELECT ON " + table + " TO observer;\n";
}

// Returns what was run.
std::string make_table(Connection& connection) {
  // An ALTER waits for those who use the table.
  const LocalTime deadline = BootClock::now() + std::chrono::minutes(1);
  const std::string& table = connection.endpoint().quoted_table();
  std::string ran;
  const auto run = [&](const std::string& sql) {
    if (sql.empty()) return;
    try {
      connection.execute(sql, deadline);
      ran += sql;
    } catch (const Error& error) {
      if (error.errc() != Errc::kDenied) throw;
      throw Error(Errc::kDenied, std::string(error.what()) + ". As somebody who may, run: " +
                                     sql.substr(0, sql.size() - 1));
    }
  };
  switch (look_at_table(connection, deadline)) {
    case TableState::kMissing:
      run(create_schema_sql(table));
      run(create_table_sql(table) + ";\n");
      break;
    case TableState::kLacksToken:
      run(add_token_sql(table) + ";\n");
      break;
    case TableState::kReady:
      break;
  }
  return ran;
}

}  // namespace

Preparation prepare(std::string_view url, Prepare how) {
  const PostgresOptions options = postgres_options(url);
  Endpoint endpoint(options);
  const std::string& table = endpoint.quoted_table();
  if (how == Prepare::kTell) return {told(table), "these make the table " + table};
  const kit::StopSignal never;
  Connection connection(endpoint, never);
  const std::string ran = make_table(connection);
  return {ran, "the table " + table +
                   (ran.empty()                ? " was there already"
                    : ran.starts_with("ALTER") ? " is up to date now"
                                               : " is made")};
}

std::vector<std::string> secrets(std::string_view url) {
  const Endpoint endpoint(postgres_options(url));
  for (const auto& [keyword, value] : endpoint.candidates().front()) {
    if (keyword == "password") return {};  // libpq asks no further
  }
  return {"PGPASSWORD"};
}

}  // namespace simba::postgres
