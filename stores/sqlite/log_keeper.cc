#include "stores/sqlite/log_keeper.h"

#include <algorithm>

#include "stores/sqlite/host.h"

namespace simba::sqlite {
namespace {

constexpr int kShort = 100;
constexpr int kLong = 1'000;
constexpr int kTooLong = 4'000;
// Readers of this library hold their locks for microseconds; one that was stopped holds it for
// ever.
constexpr nanoseconds kPatience = milliseconds{2};

}  // namespace

void LogKeeper::attach(sqlite3* db) {
  const auto hook = [](void* self, sqlite3* of, const char*, int frames) {
    static_cast<LogKeeper*>(self)->committed(of, frames);
    return SQLITE_OK;
  };
  sqlite3_wal_hook(db, hook, this);
}

void LogKeeper::committed(sqlite3* db, int frames) noexcept {
  ++commits_;
  if (frames < kTooLong) empty_at_ = kTooLong;
  if (frames >= empty_at_) {
    shorten(db, SQLITE_CHECKPOINT_TRUNCATE);
    empty_at_ = frames + kLong;
  } else if (frames >= kShort && commits_ == 2) {
    shorten(db, SQLITE_CHECKPOINT_TRUNCATE);
  } else if (frames >= kLong) {
    shorten(db, SQLITE_CHECKPOINT_PASSIVE);
  }
}

void LogKeeper::shorten(sqlite3* db, int mode) noexcept {
  const LocalTime deadline = busy_.deadline();
  busy_.start(std::min(deadline, local_now() + kPatience));
  sqlite3_wal_checkpoint_v2(db, nullptr, mode, nullptr, nullptr);
  busy_.start(deadline);
}

}  // namespace simba::sqlite
