#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "simba/export.h"
#include "simba/store.h"
#include "simba/time.h"

// The embedded store: one file, shared by the processes of one host, no server.
//
// What it holds through a crash, a reboot, a full disk, a deleted file: docs/sqlite.md.
namespace simba::inline v0 {

struct SIMBA_EXPORT SqliteOptions {
  enum class Synchronous {
    kNormal,  // a lost power supply may undo the last terms, which a reboot ends anyway
    kFull,    // every answer is on the disk; about twenty times slower
  };

  std::filesystem::path file;  // empty: default_sqlite_file()
  Synchronous synchronous = Synchronous::kNormal;
  milliseconds open_timeout{5'000};  // of open_sqlite(); later calls have deadlines of their own
};

// $XDG_STATE_HOME/simba/locks.db, else ~/.local/state/simba/locks.db; for root
// /var/lib/simba/locks.db.
SIMBA_EXPORT std::filesystem::path default_sqlite_file();

// `sqlite:` (the default file), `sqlite:PATH`, `sqlite:///abs/path?synchronous=full`. A path may
// hold %XX. Throws Error (kMisconfigured) for what it does not know.
SIMBA_EXPORT SqliteOptions sqlite_options(std::string_view url);

// Makes the file where it is missing (mode 0600), and for the default file its directory (0700).
// Errors: kMisconfigured for a place or a file that cannot be trusted, kDenied, kCorrupt,
// kUnreachable for a full disk, kTimeout, kReplaced where it is replaced while it is opened.
SIMBA_EXPORT std::shared_ptr<Store> open_sqlite(const SqliteOptions& options = {});

}  // namespace simba::inline v0
