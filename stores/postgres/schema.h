#pragma once

#include <span>
#include <string>

#include "stores/postgres/connection.h"

namespace simba::postgres {

// The statement that makes the table.
std::string create_table_sql(const std::string& quoted_table);
// And what an old one lacks.
std::string add_token_sql(const std::string& quoted_table);

enum class TableState {
  kMissing,
  kLacksToken,  // an old one of ours
  kReady,
};
// Throws Error (kMisconfigured) for a table that cannot be used, with what to do.
TableState look_at_table(Connection& connection, LocalTime deadline);

// Makes a new connection ready: the table is there, the session's settings are set, the statements
// are prepared. Behind a pooler only the table is looked for. Throws Error that says what is
// missing and what to do.
void prepare_connection(Connection& connection, std::span<const Statement> statements,
                        LocalTime deadline);

}  // namespace simba::postgres
