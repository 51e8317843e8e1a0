#include <sqlite3.h>

#include "stores/sqlite/administration.h"
#include "stores/sqlite/database.h"

namespace simba::sqlite {
namespace {

using Verdict = Finding::Verdict;
namespace fs = std::filesystem;

constexpr std::uintmax_t kLittleRoom = 16U << 20U;

Finding judge_room(const fs::path& file) {
  std::error_code error;
  const fs::space_info room = fs::space(file.parent_path(), error);
  if (error) return {"room", Verdict::kWarning, "unknown: " + error.message()};
  const std::string text = std::to_string(room.available >> 20U) + " MiB free beside the file";
  if (room.available >= kLittleRoom) return {"room", Verdict::kOk, text};
  return {"room", Verdict::kWarning, text + ": a full disk ends every term; make room"};
}

// Writes, and takes it back.
Finding try_rights(Database& database, LocalTime deadline) {
  try {
    const Database::Borrowed session = [&] {
      database.check(Database::Access::kTake);
      return database.borrow(Database::Access::kTake, deadline);
    }();
    const Transaction undone(session->connection(), Transaction::Kind::kWrite);
    session->connection().execute(
        "INSERT INTO simba_mutex (mutex, owner_id, acquired_at, ttl_at, transition_at, token, "
        "boot_id) VALUES ('simba-doctor-' || hex(randomblob(8)), '', 0, 0, 0, 0, '')");
    return {"rights", Verdict::kOk, "may contend"};
  } catch (const Error& error) {
    return {"rights", Verdict::kFailed, std::string("may not contend: ") + error.what()};
  }
}

}  // namespace

Inspection inspect(std::string_view url) {
  const SqliteOptions options = sqlite_options(url);
  const fs::path file = options.file.empty() ? default_sqlite_file() : options.file;
  Inspection seen;
  seen.findings.push_back(
      {"server", Verdict::kOk,
       "SQLite " + std::string(sqlite3_libversion()) + ", within this host: " + file.string()});
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    seen.findings.push_back(
        {"file", Verdict::kFailed, "it is not there yet: run simba init, or the first simba run"});
    return seen;
  }
  const LocalTime deadline = local_now() + options.open_timeout;
  Database database(file, options.synchronous, Host::local(), deadline);
  seen.findings.push_back({"file", Verdict::kOk, "has the table"});
  seen.findings.push_back(try_rights(database, deadline));
  seen.findings.push_back(judge_room(database.location().file));
  return seen;
}

}  // namespace simba::sqlite
