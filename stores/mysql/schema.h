#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stores/mysql/connection.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {

// What is in the database.
struct FoundTable {
  struct Column {
    std::string name;
    Shape::Text text;
    std::size_t length = 0;  // characters
    bool is_key = false;
  };
  std::string engine;
  bool has_primary_key = false;  // of that name, and not a key that serves as one
  std::vector<Column> columns;

  const Column* column(std::string_view name) const;
};

std::string create_database_sql(const Endpoint& endpoint);
std::string create_table_sql(const Endpoint& endpoint);
// What brings a table up to date; empty: it is.
std::string upgrade_sql(const Endpoint& endpoint, const FoundTable& table);

// None: it is not there. `before` are statements of the same round trip.
std::optional<FoundTable> find_table(Connection& connection, LocalTime deadline,
                                     const std::string& before = {});

// False: it is not there. Throws Error (kMisconfigured) for one that cannot be used, with what to
// do.
bool check_table(Connection& connection, LocalTime deadline);

// Makes a new connection ready: the session's settings are set, the table is there, and the
// statements fit it. Throws Error that says what is missing and what to do.
void prepare_connection(Connection& connection, LocalTime deadline);
// The same for one that only looks: a table that is missing is an error.
void prepare_to_look(Connection& connection, LocalTime deadline);

}  // namespace simba::mysql
