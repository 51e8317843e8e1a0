#include "stores/sqlite/mutex_table.h"

#include <algorithm>
#include <limits>
#include <string>

#include "stores/kit/claims.h"

namespace simba::sqlite {
namespace {

constexpr auto kMaxToken = static_cast<Token>(std::numeric_limits<std::int64_t>::max());
// Far beyond any sense, far from the end of the numbers.
constexpr milliseconds kLongestLease = std::chrono::hours{24} * 36'500;

// The row as it was is `m`, the wish is `excluded`. The last condition of WHERE is reached only
// while the lease runs: this very term asks again, and keeps its token and its start. Of a row that
// is there already the functions are called twice, and what SET says is what stays.
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

constexpr const char* kEvict = R"(
  UPDATE simba_mutex SET owner_id = ''
  WHERE mutex = ?1 AND owner_id = ?2 AND token = ?3)";

constexpr const char* kObserve = R"(
  SELECT owner_id, acquired_at, ttl_at, transition_at, token, boot_id, simba_now()
  FROM simba_mutex WHERE mutex = ?1)";

constexpr const char* kList = R"(
  SELECT mutex, owner_id, acquired_at, ttl_at, transition_at, token, boot_id, simba_now()
  FROM simba_mutex WHERE mutex >= ?1 ORDER BY mutex LIMIT ?2)";

StoreTime at(std::int64_t ms) { return StoreTime{milliseconds{ms}}; }

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "sqlite: " + why);
}

void check_length(const char* what, std::string_view name) {
  if (name.empty()) refuse(std::string(what) + " is empty");
  if (name.size() > kMaxName) {
    refuse(std::string(what) + " has " + std::to_string(name.size()) +
           " bytes; this store holds at most " + std::to_string(kMaxName));
  }
}

void check_token(const char* what, Token token) {
  if (token < kMaxToken) return;
  refuse(std::string(what) + ' ' + std::to_string(token) + " is beyond the range of this store (" +
         std::to_string(kMaxToken) + ')');
}

void check_lease(const Claim& claim) {
  const bool sane = claim.ttl > milliseconds::zero() && claim.transition >= milliseconds::zero() &&
                    claim.ttl <= kLongestLease && claim.transition <= kLongestLease;
  if (sane) return;
  refuse("a lease of ttl " + std::to_string(claim.ttl.count()) + " ms and transition " +
         std::to_string(claim.transition.count()) + " ms makes no sense");
}

Observation owned(const Claim& claim, std::int64_t acquired_at, std::int64_t now, Token token) {
  return {{std::string(claim.wire_id), at(acquired_at), at(now) + claim.ttl,
           at(now) + claim.ttl + claim.transition, token},
          at(now)};
}

}  // namespace

MutexTable::MutexTable(Connection& connection)
    : connection_(connection),
      take_(connection, kTake),
      renew_(connection, kRenew),
      release_(connection, kRelease),
      evict_(connection, kEvict),
      observe_(connection, kObserve),
      list_(connection, kList) {}

void MutexTable::check(std::string_view mutex, std::string_view wire_id, Token token) {
  check_length("the mutex name", mutex);
  check_length("the wire id", wire_id);
  check_token("the token", token);
}

Answer MutexTable::contend(const Claim& claim) {
  try {
    check(claim.mutex, claim.wire_id, claim.token);
    check_token("the floor", claim.floor);
    check_lease(claim);
  } catch (const Error& error) {
    return error;
  }
  return claim.renews() ? renew(claim) : take(claim);
}

Answer MutexTable::take(const Claim& claim) {
  const std::int64_t lowest =
      std::max(static_cast<std::int64_t>(claim.floor) + 1, connection_.host().wall_us());
  take_.begin()
      .bind(1, claim.mutex)
      .bind(2, claim.wire_id)
      .bind(3, claim.ttl.count())
      .bind(4, (claim.ttl + claim.transition).count())
      .bind(5, lowest)
      .bind(6, connection_.host().boot_id);
  try {
    take_.step();
  } catch (const Error& error) {
    if (error.errc() == Errc::kReplaced) throw;
    // A token at the end of its range becomes a fraction, which the column does not take.
    if ((take_.code() & 0xff) != SQLITE_CONSTRAINT) throw;
    return Error(Errc::kCorrupt, "sqlite: the row of this mutex in " +
                                     connection_.location().given.string() +
                                     " holds a token at the end of its range");
  }
  if (sqlite3_changes(connection_.db()) == 0) return look(observe_.go_on(), claim.mutex);
  const auto [acquired_at, token] = connection_.term();
  if (token <= 0) return Error(Errc::kCorrupt, "sqlite: the row of this mutex holds no token");
  return owned(claim, acquired_at, connection_.now(), static_cast<Token>(token));
}

Answer MutexTable::renew(const Claim& claim) {
  renew_.begin()
      .bind(1, claim.mutex)
      .bind(2, claim.wire_id)
      .bind(3, claim.ttl.count())
      .bind(4, (claim.ttl + claim.transition).count())
      .bind(5, static_cast<std::int64_t>(claim.token))
      .bind(6, connection_.host().boot_id);
  renew_.step();
  if (sqlite3_changes(connection_.db()) == 0) return look(observe_.go_on(), claim.mutex);
  return owned(claim, connection_.term().acquired_at, connection_.now(), claim.token);
}

bool MutexTable::release(const Claim& claim) {
  release_.begin().bind(1, claim.mutex).bind(2, claim.wire_id);
  release_.bind(3, static_cast<std::int64_t>(claim.token)).step();
  return sqlite3_changes(connection_.db()) > 0;
}

bool MutexTable::evict(std::string_view mutex, std::string_view wire_id, Token token,
                       Eviction how) {
  Statement& statement = how == Eviction::kFreeNow ? release_ : evict_;
  statement.begin().bind(1, mutex).bind(2, wire_id);
  statement.bind(3, static_cast<std::int64_t>(token)).step();
  return sqlite3_changes(connection_.db()) > 0;
}

Answer MutexTable::observe(std::string_view mutex) { return look(observe_.begin(), mutex); }

// Who was refused sees the row by the clock that refused it: it is never free.
Answer MutexTable::look(Statement& row, std::string_view mutex) {
  row.bind(1, mutex);
  if (!row.step()) return Observation{MutexOwner::none(), at(connection_.now())};
  try {
    const Observation seen = read_row(row, 0);
    row.reset();
    return seen;
  } catch (const Error& error) {
    row.reset();
    return error;
  }
}

std::vector<Listed> MutexTable::list(std::string_view prefix, std::string_view after,
                                     std::size_t limit) {
  std::vector<Listed> found;
  const std::string first = kit::first_of_page(prefix, after);
  list_.begin().bind(1, first);
  list_.bind(2, static_cast<std::int64_t>(std::min<std::size_t>(limit, 1U << 31)));
  connection_.now();  // before the rows are as they are: none of them looks expired too early
  try {
    while (list_.step()) {
      const std::string_view mutex = list_.text(0);
      if (!mutex.starts_with(prefix)) break;
      found.push_back({std::string(mutex), read_row(list_, 1)});
    }
  } catch (...) {
    list_.reset();
    throw;
  }
  list_.reset();
  return found;
}

// A row of another boot says nothing but its token.
Observation MutexTable::read_row(Statement& row, int first) {
  const std::int64_t token = row.integer(first + 4);
  if (token <= 0) {
    throw Error(Errc::kCorrupt, "sqlite: a row of " + connection_.location().given.string() +
                                    " holds the token " + std::to_string(token));
  }
  const StoreTime now = at(row.integer(first + 6));
  MutexOwner owner = MutexOwner::none();
  owner.token = static_cast<Token>(token);
  if (row.text(first + 5) != connection_.host().boot_id) return {std::move(owner), now};
  owner.id = row.text(first);
  owner.acquired_at = at(row.integer(first + 1));
  owner.ttl_at = at(row.integer(first + 2));
  owner.transition_at = at(row.integer(first + 3));
  return {std::move(owner), now};
}

}  // namespace simba::sqlite
