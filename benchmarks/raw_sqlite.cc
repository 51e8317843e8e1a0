#include "benchmarks/raw_sqlite.h"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace simba::bench {
namespace {

constexpr std::int64_t kTtlMs = 10'000, kLeaseMs = 16'000;

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

// The functions tell what was written. RETURNING would too, and takes 1.5 us longer.
constexpr const char* kTake = R"(
  INSERT INTO simba_mutex AS m
    (mutex, owner_id, acquired_at, ttl_at, transition_at, token, boot_id)
  VALUES (?1, ?2, simba_acquired(simba_now()), simba_now() + ?3, simba_now() + ?4,
          simba_token(?5), ?6)
  ON CONFLICT (mutex) DO UPDATE SET
    owner_id      = excluded.owner_id,
    acquired_at   = simba_acquired(
                      iif(m.transition_at >= excluded.acquired_at AND m.boot_id = excluded.boot_id,
                          m.acquired_at, excluded.acquired_at)),
    ttl_at        = excluded.ttl_at,
    transition_at = excluded.transition_at,
    token         = simba_token(
                      iif(m.transition_at >= excluded.acquired_at AND m.boot_id = excluded.boot_id,
                          m.token, max(m.token + 1, excluded.token))),
    boot_id       = excluded.boot_id
  WHERE m.transition_at < excluded.acquired_at
     OR m.boot_id <> excluded.boot_id
     OR m.owner_id = excluded.owner_id)";

constexpr const char* kRenew = R"(
  UPDATE simba_mutex SET
    acquired_at   = simba_acquired(acquired_at),
    ttl_at        = simba_now() + ?3,
    transition_at = simba_now() + ?4
  WHERE mutex = ?1 AND owner_id = ?2 AND token = ?5 AND boot_id = ?6
    AND transition_at >= simba_now())";

constexpr const char* kRelease = R"(
  UPDATE simba_mutex SET owner_id = '', acquired_at = 0, ttl_at = 0, transition_at = 0
  WHERE mutex = ?1 AND owner_id = ?2 AND (?3 = 0 OR token = ?3))";

constexpr const char* kObserve = R"(
  SELECT owner_id, acquired_at, ttl_at, transition_at, token, boot_id, simba_now()
  FROM simba_mutex WHERE mutex = ?1)";

[[noreturn]] void die(sqlite3* db, const char* doing) {
  std::fprintf(stderr, "simba_bench: the raw loop cannot %s: %s\n", doing, sqlite3_errmsg(db));
  std::exit(2);
}

std::string read_boot_id() {
  char id[64] = "";
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    static_cast<void>(!std::fgets(id, sizeof id, file));
    std::fclose(file);
  }
  std::string boot_id = id;
  return boot_id.substr(0, boot_id.find('\n'));
}

std::int64_t wall_us() {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return ts.tv_sec * 1'000'000 + ts.tv_nsec / 1'000;
}

// Not bind(): where <functional> is included, a string that is not const prefers std::bind.
void bind_text(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

// Whoever sleeps through the short gaps of a busy file starves.
int wait_awake(void*, int) {
  sched_yield();
  return 1;
}

}  // namespace

std::int64_t RawSqlite::Clock::now() {
  if (!read) {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    value = ts.tv_sec * 1'000 + ts.tv_nsec / 1'000'000;
    read = true;
  }
  return value;
}

RawSqlite::RawSqlite(const std::string& file, Synchronous synchronous, Compare compare)
    : file_(file),
      wal_(file + "-wal"),
      shm_(file + "-shm"),
      compare_(compare),
      directory_(open(file.substr(0, file.rfind('/')).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      boot_id_(read_boot_id()) {
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(file.c_str(), &db_, flags, nullptr) != SQLITE_OK) die(db_, "open its file");
  sqlite3_busy_handler(db_, wait_awake, nullptr);
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
  const auto sql_now = [](sqlite3_context* context, int, sqlite3_value**) {
    sqlite3_result_int64(context, static_cast<Clock*>(sqlite3_user_data(context))->now());
  };
  const auto sql_note = [](sqlite3_context* context, int, sqlite3_value** arguments) {
    *static_cast<std::int64_t*>(sqlite3_user_data(context)) = sqlite3_value_int64(arguments[0]);
    sqlite3_result_value(context, arguments[0]);
  };
  sqlite3_create_function_v2(db_, "simba_now", 0, kFlags | SQLITE_DETERMINISTIC, &clock_, sql_now,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(db_, "simba_acquired", 1, kFlags, &written_.acquired_at, sql_note,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(db_, "simba_token", 1, kFlags, &written_.token, sql_note, nullptr,
                             nullptr, nullptr);
  execute("PRAGMA page_size = 1024");
  execute("PRAGMA journal_mode = WAL");
  execute(synchronous == Synchronous::kFull ? "PRAGMA synchronous = FULL"
                                            : "PRAGMA synchronous = NORMAL");
  execute("PRAGMA journal_size_limit = 4194304");
  execute(kCreate);
  take_ = prepare(kTake);
  renew_ = prepare(kRenew);
  release_ = prepare(kRelease);
  observe_ = prepare(kObserve);
  observe("");  // now the log and the memory are there, too
  opened_ = {file_on(file_), file_on(wal_), file_on(shm_)};
}

RawSqlite::~RawSqlite() {
  for (sqlite3_stmt* statement : {take_, renew_, release_, observe_}) sqlite3_finalize(statement);
  sqlite3_close(db_);
  close(directory_);
}

std::int64_t RawSqlite::take(const std::string& mutex, const std::string& owner) {
  check_before();
  clock_.read = false;
  bind_text(take_, 1, mutex);
  bind_text(take_, 2, owner);
  sqlite3_bind_int64(take_, 3, kTtlMs);
  sqlite3_bind_int64(take_, 4, kLeaseMs);
  sqlite3_bind_int64(take_, 5, wall_us());
  bind_text(take_, 6, boot_id_);
  end(take_, sqlite3_step(take_));
  const bool taken = sqlite3_changes(db_) > 0;
  if (!taken) observe(mutex);
  check_after();
  return taken ? written_.token : 0;
}

bool RawSqlite::release(const std::string& mutex, const std::string& owner, std::int64_t token) {
  check_before();
  clock_.read = false;
  bind_text(release_, 1, mutex);
  bind_text(release_, 2, owner);
  sqlite3_bind_int64(release_, 3, token);
  end(release_, sqlite3_step(release_));
  check_after();
  return sqlite3_changes(db_) > 0;
}

void RawSqlite::renew(const std::vector<std::string>& mutexes, const std::string& owner,
                      const std::vector<std::int64_t>& tokens) {
  check_before();
  execute("BEGIN IMMEDIATE");
  for (std::size_t i = 0; i < mutexes.size(); ++i) {
    clock_.read = false;
    bind_text(renew_, 1, mutexes[i]);
    bind_text(renew_, 2, owner);
    sqlite3_bind_int64(renew_, 3, kTtlMs);
    sqlite3_bind_int64(renew_, 4, kLeaseMs);
    sqlite3_bind_int64(renew_, 5, tokens[i]);
    bind_text(renew_, 6, boot_id_);
    end(renew_, sqlite3_step(renew_));
    if (sqlite3_changes(db_) != 1) die(db_, "renew");
  }
  execute("COMMIT");
  check_after();
}

void RawSqlite::observe(const std::string& mutex) {
  clock_.read = false;
  bind_text(observe_, 1, mutex);
  if (sqlite3_step(observe_) == SQLITE_ROW) {
    seen_.owner = reinterpret_cast<const char*>(sqlite3_column_text(observe_, 0));
    seen_.acquired_at = sqlite3_column_int64(observe_, 1);
    seen_.ttl_at = sqlite3_column_int64(observe_, 2);
    seen_.transition_at = sqlite3_column_int64(observe_, 3);
    seen_.token = sqlite3_column_int64(observe_, 4);
  }
  sqlite3_reset(observe_);
}

RawSqlite::File RawSqlite::file_on(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

void RawSqlite::check_before() {
  if (compare_ != Compare::kDirectory) return;
  clock_.read = false;
  clock_.now();
  compare_all();
}

void RawSqlite::check_after() {
  if (compare_ == Compare::kDirectory) compare_all();
  if (compare_ == Compare::kPath && file_on(file_) != opened_[0]) die(db_, "find its file again");
}

void RawSqlite::compare_all() {
  struct stat info {};
  fstat(directory_, &info);
  const auto same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  const bool is_as_it_was =
      same(info.st_mtim, directory_times_.modified) && same(info.st_ctim, directory_times_.changed);
  if (is_as_it_was && clock_.value - compared_at_ < 100) return;
  directory_times_ = {info.st_mtim, info.st_ctim};
  compared_at_ = clock_.value;
  if (std::array{file_on(file_), file_on(wal_), file_on(shm_)} != opened_) {
    die(db_, "find its files again");
  }
}

void RawSqlite::execute(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) die(db_, sql);
}

sqlite3_stmt* RawSqlite::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) die(db_, "prepare a statement");
  return statement;
}

void RawSqlite::end(sqlite3_stmt* statement, int code) {
  sqlite3_reset(statement);
  if (code != SQLITE_DONE) die(db_, "run a statement");
}

}  // namespace simba::bench
