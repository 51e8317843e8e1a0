#include "stores/sqlite/sqlite_store.h"

#include <algorithm>
#include <optional>

namespace simba::sqlite {
namespace {

// Between the claims of a large batch the deadline is looked at this often.
constexpr std::size_t kClaimsBetweenLooks = 64;

// Runs `one` for each item: a single one as its own transaction, which SQLite makes by itself.
template <class Items, class One>
Answers each(Connection& connection, Transaction::Kind kind, const Items& items, One one) {
  Answers answers;
  answers.reserve(items.size());
  std::optional<Transaction> transaction;
  if (items.size() > 1) transaction.emplace(connection, kind);
  if (transaction && kind == Transaction::Kind::kWrite) connection.check_files();
  for (const auto& item : items) {
    answers.push_back(one(item));
    if (answers.size() % kClaimsBetweenLooks == 0) connection.check_deadline();
  }
  if (transaction) transaction->commit();
  return answers;
}

Answer release_one(MutexTable& table, const Claim& claim, std::vector<std::string_view>& freed) {
  try {
    MutexTable::check(claim.mutex, claim.wire_id, claim.token);
  } catch (const Error& error) {
    return error;
  }
  if (table.release(claim)) freed.push_back(claim.mutex);
  return Observation{};
}

}  // namespace

SqliteStore::SqliteStore(SqliteOptions options, Host host)
    : traits_{"sqlite", kMaxName, kMaxName, false},
      options_(std::move(options)),
      host_(std::move(host)),
      listener_(std::make_shared<Listener>()),
      forks_(fork_count()) {
  current(local_now() + options_.open_timeout);
}

SqliteStore::~SqliteStore() = default;

template <class Work>
auto SqliteStore::call(const std::shared_ptr<Database>& database, Access access, LocalTime deadline,
                       Work work) {
  database->check(access);
  try {
    const Database::Borrowed session = database->borrow(access, deadline);
    Connection& connection = session->connection();
    connection.check_deadline();
    // Before it writes, too: by a memory that was deleted it would write over what others, who have
    // the new one, wrote into the same log.
    connection.forget_now();
    if (access == Access::kRead || database->is_unchanged(connection)) {
      auto result = work(*session);
      if (database->is_unchanged(connection)) return result;
    }
  } catch (const Error& error) {
    // What went wrong with a file that is gone does not matter.
    if (error.errc() != Errc::kReplaced && database->is_current()) throw;
  }
  give_up(database);
}

Answers SqliteStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  if (claims.empty()) return {};
  const bool keeps = std::ranges::any_of(claims, &Claim::renews);
  const Access access = keeps ? Access::kKeep : Access::kTake;
  return call(current(deadline), access, deadline, [&](Database::Session& session) {
    return each(session.connection(), Transaction::Kind::kWrite, claims,
                [&](const Claim& claim) { return session.table().contend(claim); });
  });
}

Answers SqliteStore::release(std::span<const Claim> claims, LocalTime deadline) {
  if (claims.empty()) return {};
  const std::shared_ptr<Database> database = current(deadline);
  Names freed;
  Answers answers = call(database, Access::kKeep, deadline, [&](Database::Session& session) {
    return each(session.connection(), Transaction::Kind::kWrite, claims,
                [&](const Claim& claim) { return release_one(session.table(), claim, freed); });
  });
  announce(*database, freed);
  return answers;
}

Answers SqliteStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  if (mutexes.empty()) return {};
  return call(current(deadline), Access::kRead, deadline, [&](Database::Session& session) {
    return each(session.connection(), Transaction::Kind::kRead, mutexes,
                [&](std::string_view mutex) { return session.table().observe(mutex); });
  });
}

Observation SqliteStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                               Eviction how, LocalTime deadline) {
  MutexTable::check(mutex, wire_id, token);
  const std::shared_ptr<Database> database = current(deadline);
  Names freed;
  const Answer after = call(database, Access::kKeep, deadline, [&](Database::Session& session) {
    Transaction transaction(session.connection(), Transaction::Kind::kWrite);
    session.connection().check_files();
    if (session.table().evict(mutex, wire_id, token, how)) freed.push_back(mutex);
    Answer seen = session.table().observe(mutex);
    transaction.commit();
    return seen;
  });
  announce(*database, freed);
  if (const auto* error = std::get_if<Error>(&after)) throw *error;
  return std::get<Observation>(after);
}

std::unique_ptr<Watch> SqliteStore::watch(std::string_view mutex, std::string_view,
                                          std::function<void()> wake) {
  check_fork();
  return listener_->add(mutex, std::move(wake));
}

std::vector<Listed> SqliteStore::list(std::string_view prefix, std::string_view after,
                                      std::size_t limit, LocalTime deadline) {
  return call(current(deadline), Access::kRead, deadline, [&](Database::Session& session) {
    return session.table().list(prefix, after, limit);
  });
}

void SqliteStore::check_fork() const {
  if (fork_count() == forks_) return;
  throw Error(Errc::kMisuse,
              "sqlite: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

// In a forked child it is never destroyed: its connections are copies of the parent's, and closing
// one would break the parent's.
std::shared_ptr<Database> SqliteStore::open_database(LocalTime deadline) const {
  auto opened = std::make_unique<Database>(options_.file, options_.synchronous, host_, deadline);
  return {opened.release(), [forks = forks_](Database* database) {
            if (fork_count() == forks) delete database;
          }};
}

std::shared_ptr<Database> SqliteStore::current(LocalTime deadline) {
  check_fork();
  {
    const std::lock_guard lock(mutex_);
    if (database_) return database_;
  }
  // Not under the lock: other callers have deadlines of their own.
  std::shared_ptr<Database> opened = open_database(deadline);
  {
    const std::lock_guard lock(mutex_);
    if (database_) return database_;
    database_ = opened;
  }
  listener_->bind(opened->location().bells());
  return opened;
}

void SqliteStore::give_up(const std::shared_ptr<Database>& database) {
  {
    const std::lock_guard lock(mutex_);
    if (database_ == database) database_.reset();
  }
  database->give_up();
  throw Error(Errc::kReplaced, "sqlite: " + database->location().given.string() +
                                   " was deleted or replaced; what was locked in the old file is "
                                   "locked no more");
}

void SqliteStore::announce(Database& database, const Names& freed) {
  std::uint64_t bells = 0;
  for (const std::string_view mutex : freed) bells |= std::uint64_t{1} << Bells::of(mutex);
  for (unsigned bell = 0; bells != 0; ++bell, bells >>= 1) {
    if ((bells & 1) != 0) database.bells().ring(bell);
  }
  // Other processes first: they have the longer way.
  for (const std::string_view mutex : freed) listener_->wake(mutex, Bells::of(mutex));
}

std::shared_ptr<Store> open(const SqliteOptions& options, const Host& host) {
  return std::make_shared<SqliteStore>(options, host);
}

}  // namespace simba::sqlite

namespace simba::inline v0 {

std::shared_ptr<Store> open_sqlite(const SqliteOptions& options) {
  return sqlite::open(options, sqlite::Host::local());
}

}  // namespace simba::inline v0
