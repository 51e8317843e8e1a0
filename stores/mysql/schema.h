#pragma once

#include <optional>
#include <string>

#include "stores/mysql/connection.h"
#include "stores/mysql/found_table.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {

std::string create_database_sql(const Endpoint& endpoint);
std::string create_table_sql(const Endpoint& endpoint);

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
