#include "stores/sqlite/schema.h"

#include <string>

namespace simba::sqlite {
namespace {

// Small pages: a claim changes one row, and its whole page goes through the log.
constexpr const char* kPageSize = "PRAGMA page_size = 1024";
constexpr const char* kCreate = R"(
  CREATE TABLE IF NOT EXISTS simba_mutex (
    mutex         TEXT    NOT NULL PRIMARY KEY COLLATE BINARY,
    owner_id      TEXT    NOT NULL,
    acquired_at   INTEGER NOT NULL,
    ttl_at        INTEGER NOT NULL,
    transition_at INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    boot_id       TEXT    NOT NULL
  ) STRICT, WITHOUT ROWID)";

std::string application_sql() {
  return "PRAGMA application_id = " + std::to_string(kApplicationId);
}
std::string version_sql() { return "PRAGMA user_version = " + std::to_string(kSchemaVersion); }

[[noreturn]] void refuse(const Connection& connection, const std::string& why) {
  throw Error(Errc::kMisconfigured, "sqlite: " + connection.location().given.string() + why);
}

struct Found {
  int application_id = 0;
  int version = 0;
  bool empty = true;
  bool wal = false;
};

// In one transaction: another process may be setting the file up at this moment.
Found look(Connection& connection) {
  Transaction transaction(connection, Transaction::Kind::kRead);
  Found found;
  found.empty = connection.query("SELECT count(*) FROM sqlite_schema") == "0";
  found.application_id = std::stoi(connection.query("PRAGMA application_id"));
  found.version = std::stoi(connection.query("PRAGMA user_version"));
  found.wal = connection.query("PRAGMA journal_mode") == "wal";
  transaction.commit();
  return found;
}

// True: nothing is left to do.
bool is_prepared(Connection& connection) {
  const Found found = look(connection);
  if (found.empty && found.application_id == 0 && found.version == 0) return false;
  if (found.application_id != kApplicationId) {
    refuse(connection, " is a database of another program; choose another file");
  }
  if (found.version != kSchemaVersion) {
    refuse(connection, " has layout version " + std::to_string(found.version) +
                           ", this library knows up to " + std::to_string(kSchemaVersion) +
                           "; update the library");
  }
  return found.wal;
}

// Here SQLite does not always ask its busy handler.
void switch_to_wal(Connection& connection) {
  connection.busy().until([&] {
    try {
      if (connection.query("PRAGMA journal_mode = WAL") == "wal") return true;
    } catch (const Error& error) {
      if (error.errc() != Errc::kTimeout) throw;
      connection.check_deadline();
      return false;
    }
    refuse(connection, " cannot be switched to WAL on this file system; use another directory");
  });
}

}  // namespace

std::string schema_sql() {
  const std::string create = kCreate;
  return std::string(kPageSize) + ";\nPRAGMA journal_mode = WAL;" + create + ";\n" +
         application_sql() + ";\n" + version_sql() + ";\n";
}

// Each step may have been done by another process meanwhile; then it changes nothing.
void prepare_schema(Connection& connection) {
  if (is_prepared(connection)) return;
  if (!connection.location().writable) {
    throw Error(Errc::kDenied, "sqlite: " + connection.location().given.string() +
                                   " is not set up yet and cannot be written by this user");
  }
  connection.execute(kPageSize);
  switch_to_wal(connection);
  Transaction transaction(connection, Transaction::Kind::kWrite);
  connection.execute(kCreate);
  connection.execute(application_sql().c_str());
  connection.execute(version_sql().c_str());
  transaction.commit();
}

}  // namespace simba::sqlite
