#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stores/mysql/endpoint.h"
#include "stores/mysql/result.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {

// What is in the database.
struct FoundTable {
  struct Column {
    std::string name;
    Shape::Text text;
    std::size_t length = 0;  // characters
  };
  std::string engine;
  // No name of a mutex is there twice: a unique key is on it alone, and on all of it.
  bool has_key = false;
  bool has_primary_key = false;  // it is that one
  bool has_other_primary_key = false;
  std::vector<Column> columns;

  const Column* column(std::string_view name) const;
  bool is_old() const;  // it has no tokens
};

// The answers to SHOW FULL COLUMNS and SHOW CREATE TABLE. Throws Error (kCorrupt).
FoundTable read_table(Result& columns, Result& definition);

// Throws Error (kMisconfigured) for one that is not ours, whatever else is wrong with it.
void check_names(const Endpoint& endpoint, const FoundTable& table);
// The same for one that cannot be used, with what to do.
void check_columns(const Endpoint& endpoint, const FoundTable& table);
[[noreturn]] void refuse_table(const Endpoint& endpoint, const std::string& why);

// What brings a table up to date; empty: it is.
std::string upgrade_sql(const Endpoint& endpoint, const FoundTable& table);

}  // namespace simba::mysql
