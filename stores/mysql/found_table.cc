#include "stores/mysql/found_table.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace simba::mysql {
namespace {

constexpr std::array<std::string_view, 6> kOldColumns{"mutex",         "acquired_at", "ttl_at",
                                                      "transition_at", "owner_id",    "version"};
constexpr std::string_view kTokenColumn = "fencing_token";
constexpr std::size_t kOwnerLength = 128;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return out;
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

bool is_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

constexpr std::string_view kOnMutex = " (`mutex`)";

// Behind the opening quote of a name, in which quotes are doubled: what comes after the name.
std::string_view behind_name(std::string_view text) {
  std::size_t at = text.find('`');
  while (at != text.npos && text.substr(at + 1, 1) == "`") at = text.find('`', at + 2);
  return at == text.npos ? "" : text.substr(at + 1);
}

// Each key has a line, as "UNIQUE KEY `names` (`mutex`) USING BTREE,". SHOW FULL COLUMNS tells of
// each column of a key that it is one.
void read_keys(std::string_view definition, FoundTable& table) {
  constexpr std::string_view kPrimary = "primary key", kUnique = "unique key `";
  while (!definition.empty()) {
    const std::size_t end = std::min(definition.find('\n'), definition.size());
    std::string_view line = definition.substr(0, end);
    definition.remove_prefix(std::min(end + 1, definition.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with(kPrimary)) {
      const bool is_ours = line.substr(kPrimary.size()).starts_with(kOnMutex);
      (is_ours ? table.has_primary_key : table.has_other_primary_key) = true;
    } else if (line.starts_with(kUnique)) {
      const std::string_view columns = behind_name(line.substr(kUnique.size()));
      table.has_key = table.has_key || columns.starts_with(kOnMutex);
    }
  }
  table.has_key = table.has_key || table.has_primary_key;
}

}  // namespace

const FoundTable::Column* FoundTable::column(std::string_view name) const {
  const auto it = std::find_if(columns.begin(), columns.end(),
                               [&](const Column& each) { return each.name == name; });
  return it == columns.end() ? nullptr : &*it;
}

bool FoundTable::is_old() const { return column(kTokenColumn) == nullptr; }

FoundTable read_table(Result& columns, Result& definition) {
  FoundTable table;
  while (columns.next()) {
    FoundTable::Column column;
    column.name = lower(columns.text(0));
    column.length = length_in(columns.text(1));
    if (!columns.is_null(2)) {
      const std::string collation(columns.text(2));
      // It becomes part of statements.
      if (!is_word(collation))
        refuse_answer(columns.where(), "names a collation that cannot be one");
      column.text = {collation.substr(0, collation.find('_')), collation};
    }
    table.columns.push_back(std::move(column));
  }
  if (definition.next()) {
    const std::string text = lower(definition.text(1));
    read_keys(text, table);
    const std::size_t at = text.find("engine=");
    if (at != text.npos) table.engine = text.substr(at + 7, text.find_first_of(" \n", at) - at - 7);
  }
  return table;
}

void refuse_table(const Endpoint& endpoint, const std::string& why) {
  throw Error(Errc::kMisconfigured, "mysql at " + endpoint.where() + ": the table " +
                                        endpoint.quoted_table() + ' ' + why);
}

void check_names(const Endpoint& endpoint, const FoundTable& table) {
  for (const std::string_view name : kOldColumns) {
    if (table.column(name) == nullptr) {
      refuse_table(endpoint,
                   "has no column " + std::string(name) +
                       ": it is another table, or a broken one; docs/mysql.md has the columns");
    }
  }
}

void check_columns(const Endpoint& endpoint, const FoundTable& table) {
  check_names(endpoint, table);
  if (table.engine != "innodb") {
    refuse_table(endpoint, "is of the engine " + (table.engine.empty() ? "(none)" : table.engine) +
                               ", which cannot lock a row nor survive a crash: run ALTER TABLE " +
                               endpoint.quoted_table() + " ENGINE = InnoDB");
  }
  if (!table.has_key) {
    refuse_table(endpoint, "may hold a mutex twice: run ALTER TABLE " + endpoint.quoted_table() +
                               (table.has_other_primary_key ? " DROP PRIMARY KEY," : "") +
                               " ADD PRIMARY KEY (mutex)");
  }
  const bool is_exact =
      std::equal(kOldColumns.begin(), kOldColumns.end(), table.columns.begin(), table.columns.end(),
                 [](std::string_view name, const auto& column) { return name == column.name; });
  if (table.is_old() && !is_exact) {
    refuse_table(endpoint, "has neither tokens nor exactly the columns of JVM Simba: run " +
                               upgrade_sql(endpoint, table));
  }
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
  // In the same moment: until now the version was the token, and a JVM contender adds one to what
  // it finds. Rows that are made later begin with the version 0.
  if (table.is_old()) add("ADD COLUMN fencing_token BIGINT UNSIGNED NOT NULL DEFAULT (version)");
  return changes.empty() ? "" : "ALTER TABLE " + endpoint.quoted_table() + changes + ';';
}

}  // namespace simba::mysql
