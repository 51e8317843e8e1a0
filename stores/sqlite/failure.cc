#include "stores/sqlite/failure.h"

#include <cerrno>
#include <system_error>

namespace simba::sqlite {
namespace {

struct Meaning {
  Errc code;
  const char* advice;
};

constexpr Meaning kFull{Errc::kUnreachable,
                        "the disk is full; nothing was changed: free some space"};

Meaning meaning_of(int code, int system_error) {
  const bool full = system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Errc::kTimeout,
              "somebody else held the lock of the file until the deadline; a stopped process can"};
    case SQLITE_FULL:
      return kFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {Errc::kCorrupt,
              "the file is damaged or no SQLite database; move it away while no contender runs, a "
              "new one is made"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return {Errc::kDenied, "this user cannot write the file or its directory; check both"};
    case SQLITE_CANTOPEN:
      if (full) return kFull;
      if (system_error == EMFILE || system_error == ENFILE) {
        return {Errc::kUnreachable, "no descriptor is left for it; see ulimit -n"};
      }
      return {
          Errc::kDenied,
          "the file, or its -wal and -shm beside it, cannot be opened; check the permissions of "
          "the directory"};
    case SQLITE_IOERR:
      if (full) return kFull;
      return {Errc::kUnreachable, "the disk failed; see the kernel's log"};
    case SQLITE_NOMEM:
      return {Errc::kUnreachable, "there is no memory left"};
    case SQLITE_PROTOCOL:
      return {Errc::kUnreachable, "too many processes began to read at once; try again"};
    default:
      return {Errc::kCorrupt, "the file does not hold what this version writes"};
  }
}

}  // namespace

Error failure(sqlite3* db, int code, const std::string& file, const std::string& doing) {
  const int system_error = db != nullptr ? sqlite3_system_errno(db) : 0;
  const Meaning meaning = meaning_of(code, system_error);
  std::string what = "sqlite: cannot " + doing + " in " + file + ": " + meaning.advice + " (" +
                     (db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code)) + ", code " +
                     std::to_string(code);
  const int kind = code & 0xff;
  if (system_error != 0 && (kind == SQLITE_CANTOPEN || kind == SQLITE_IOERR)) {
    what += ", " + std::generic_category().message(system_error);
  }
  return {meaning.code, what + ')'};
}

bool breaks_connection(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_CONSTRAINT:
      return false;
    default:
      return true;
  }
}

}  // namespace simba::sqlite
