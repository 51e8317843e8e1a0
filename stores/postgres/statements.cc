#include "stores/postgres/statements.h"

#include <string>
#include <string_view>
#include <utility>

#include "stores/postgres/wire.h"

namespace simba::postgres {
namespace {

// How a claim is decided.
//
// `seen` reads without a lock. What it shows only saves writes: a claim that cannot succeed is
// answered from it and writes nothing. What may succeed (`fits`) is decided again by the statement
// that writes, by the row as it is once its lock is ours: ON CONFLICT DO UPDATE locks the row
// before it looks at WHERE. There clock_timestamp() tells the time after the wait; nothing that was
// computed before it is written (EXCLUDED and CTEs bring names, durations and the lowest token,
// which do not age). A claim that fitted and then did not is answered with no row: the next
// statement sees who was faster.
//
// What holds for the statement alone, also behind a pooler, is set on the way: before a statement
// locks a row it has evaluated its WHERE. lock_timeout; and synchronous_commit. {durable} turns it
// on where it is off, as what was answered must survive a crash of the server, and lets the server
// say where it waited for no standby, which is a warning alone. A release need not
// ({unflushed}): one that a crash took back is a lease that runs out by itself, and whoever takes
// the mutex meanwhile writes to the same log behind it, so that no crash keeps the take alone.
//
// {now} is the server's clock in milliseconds, {now_us} in microseconds. A token is at least the
// latter, so that it grows also where a failover or a deleted row has forgotten the last one. Both
// are read a dozen times by one statement: date_part() is right to a microsecond, never goes back,
// and costs less than extract(), which counts in decimal.

constexpr std::string_view kNow = "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint";
constexpr std::string_view kBefore =
    "floor(date_part('epoch', transaction_timestamp()) * 1000)::bigint";
constexpr std::string_view kNowUs =
    "floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint";

constexpr std::string_view kDurable =
    "(set_config('lock_timeout', $1, true) IS NOT NULL"
    " AND (current_setting('synchronous_commit') <> 'off'"
    " OR set_config('synchronous_commit', 'on', true) IS NOT NULL)"
    " AND (current_setting('client_min_messages') <> 'error'"
    " OR set_config('client_min_messages', 'warning', true) IS NOT NULL))";
constexpr std::string_view kUnflushed =
    "(set_config('lock_timeout', $1, true) IS NOT NULL"
    " AND set_config('synchronous_commit', 'off', true) IS NOT NULL)";

constexpr std::string_view kTakeOneSql = R"(
  WITH seen AS MATERIALIZED (
    SELECT m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token, {now} AS now,
           (m.transition_at < {now} OR m.owner_id = $3)
             AND m.fencing_token < 9223372036854775807 AS fits
    FROM {table} m WHERE m.mutex = $2),
  won AS (
    INSERT INTO {table} AS m
      (mutex, acquired_at, ttl_at, transition_at, owner_id, version, fencing_token)
    SELECT $2, {now}, {now} + $4, {now} + $5, $3, 1, greatest($6, {now_us})
    WHERE NOT EXISTS (SELECT FROM seen WHERE NOT fits)
      AND {durable}
    ON CONFLICT (mutex) DO UPDATE SET
      acquired_at   = {now},
      ttl_at        = {now} + $4,
      transition_at = {now} + $5,
      owner_id      = $3,
      version       = m.version + 1,
      fencing_token = CASE WHEN m.owner_id = $3 AND m.transition_at >= {now} THEN m.fencing_token
                           ELSE greatest(m.fencing_token + 1, $6, {now_us}) END
    WHERE (m.transition_at < {now} OR m.owner_id = $3)
      AND m.fencing_token < 9223372036854775807
    RETURNING m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token)
  SELECT owner_id, acquired_at, ttl_at, transition_at, fencing_token, {now} FROM won
  UNION ALL
  SELECT owner_id, acquired_at, ttl_at, transition_at, fencing_token, now FROM seen WHERE NOT fits)";

constexpr std::string_view kTakeManySql = R"(
  WITH bound AS MATERIALIZED (SELECT {durable}),
  claim AS MATERIALIZED (
    SELECT c.* FROM bound, unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
      WITH ORDINALITY AS c (mutex, owner_id, ttl, lease, token, place)),
  seen AS MATERIALIZED (
    SELECT c.place, c.mutex, m.mutex IS NULL AS is_new,
           m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token, {now} AS now,
           m.mutex IS NULL OR ((m.transition_at < {now} OR m.owner_id = c.owner_id)
             AND m.fencing_token < 9223372036854775807) AS fits
    FROM claim c LEFT JOIN {table} m ON m.mutex = c.mutex),
  locked AS MATERIALIZED (
    SELECT s.place FROM seen s JOIN {table} m ON m.mutex = s.mutex
    WHERE s.fits AND NOT s.is_new
    FOR UPDATE OF m SKIP LOCKED),
  won AS (
    INSERT INTO {table} AS m
      (mutex, acquired_at, ttl_at, transition_at, owner_id, version, fencing_token)
    SELECT c.mutex, k.now, k.now + c.ttl, k.now + c.lease, c.owner_id, 1,
           greatest(c.token, {now_us})
    FROM claim c JOIN seen s ON s.place = c.place, LATERAL (SELECT {now} AS now) k
    WHERE s.is_new OR c.place IN (SELECT place FROM locked)
    ORDER BY c.place
    ON CONFLICT (mutex) DO UPDATE SET
      acquired_at   = {now},
      ttl_at        = {now} + (EXCLUDED.ttl_at - EXCLUDED.acquired_at),
      transition_at = {now} + (EXCLUDED.transition_at - EXCLUDED.acquired_at),
      owner_id      = EXCLUDED.owner_id,
      version       = m.version + 1,
      fencing_token = CASE WHEN m.owner_id = EXCLUDED.owner_id AND m.transition_at >= {now}
                           THEN m.fencing_token
                           ELSE greatest(m.fencing_token + 1, EXCLUDED.fencing_token, {now_us}) END
    WHERE (m.transition_at < {now} OR m.owner_id = EXCLUDED.owner_id)
      AND m.fencing_token < 9223372036854775807
    RETURNING m.mutex, m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token)
  SELECT w.owner_id, w.acquired_at, w.ttl_at, w.transition_at, w.fencing_token, {now}, c.place
  FROM won w JOIN claim c ON c.mutex = w.mutex
  UNION ALL
  SELECT owner_id, acquired_at, ttl_at, transition_at, fencing_token, now, place
  FROM seen WHERE NOT fits)";

// A plain UPDATE would look at the clock before it waits for the row. A row in `locked` is there
// and is ours, so that this INSERT always meets it and never makes one. {skip} is empty for one
// claim, which waits for its row.
constexpr std::string_view kRenewSql = R"(
  WITH bound AS MATERIALIZED (SELECT {durable}),
  claim AS MATERIALIZED (
    SELECT c.* FROM bound, unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
      WITH ORDINALITY AS c (mutex, owner_id, ttl, lease, token, place)),
  seen AS MATERIALIZED (
    SELECT c.place, c.mutex,
           m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token, {now} AS now,
           coalesce(m.owner_id = c.owner_id AND m.fencing_token = c.token
                      AND m.transition_at >= {now}, false) AS fits
    FROM claim c LEFT JOIN {table} m ON m.mutex = c.mutex),
  locked AS MATERIALIZED (
    SELECT s.place FROM seen s JOIN {table} m ON m.mutex = s.mutex
    WHERE s.fits
    FOR UPDATE OF m {skip}),
  renewed AS (
    INSERT INTO {table} AS m
      (mutex, acquired_at, ttl_at, transition_at, owner_id, version, fencing_token)
    SELECT c.mutex, 0, c.ttl, c.lease, c.owner_id, 0, c.token
    FROM locked l JOIN claim c ON c.place = l.place
    ORDER BY c.place
    ON CONFLICT (mutex) DO UPDATE SET
      acquired_at   = {now},
      ttl_at        = {now} + EXCLUDED.ttl_at,
      transition_at = {now} + EXCLUDED.transition_at,
      version       = m.version + 1
    WHERE m.owner_id = EXCLUDED.owner_id AND m.fencing_token = EXCLUDED.fencing_token
      AND m.transition_at >= {now}
    RETURNING m.mutex, m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token)
  SELECT r.owner_id, r.acquired_at, r.ttl_at, r.transition_at, r.fencing_token, {now}, c.place
  FROM renewed r JOIN claim c ON c.mutex = r.mutex
  UNION ALL
  SELECT owner_id, acquired_at, ttl_at, transition_at, fencing_token, now, place
  FROM seen WHERE NOT fits)";

constexpr std::string_view kReleaseOneSql = R"(
  UPDATE {table} m SET
    acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', version = m.version + 1
  WHERE m.mutex = $2 AND m.owner_id = $3 AND ($4 = 0 OR m.fencing_token = $4)
    AND {unflushed}
  RETURNING m.mutex, pg_notify('{channel}', m.mutex))";

// A row for each claim that was skipped, and for each that made a mutex free.
constexpr std::string_view kReleaseManySql = R"(
  WITH bound AS MATERIALIZED (SELECT {unflushed}),
  claim AS MATERIALIZED (
    SELECT c.* FROM bound, unnest($2::text[], $3::text[], $4::bigint[])
      WITH ORDINALITY AS c (mutex, owner_id, token, place)),
  mine AS MATERIALIZED (
    SELECT c.place FROM claim c JOIN {table} m ON m.mutex = c.mutex
    WHERE m.owner_id = c.owner_id AND (c.token = 0 OR m.fencing_token = c.token)),
  locked AS MATERIALIZED (
    SELECT c.place FROM mine JOIN claim c ON c.place = mine.place JOIN {table} m ON m.mutex = c.mutex
    FOR UPDATE OF m SKIP LOCKED),
  freed AS (
    UPDATE {table} m SET
      acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', version = m.version + 1
    FROM locked l JOIN claim c ON c.place = l.place
    WHERE m.mutex = c.mutex AND m.owner_id = c.owner_id
      AND (c.token = 0 OR m.fencing_token = c.token)
    RETURNING m.mutex, c.place)
  SELECT place, true AS is_free, pg_notify('{channel}', mutex) FROM freed
  UNION ALL
  SELECT place, false, NULL FROM mine WHERE place NOT IN (SELECT place FROM locked))";

constexpr std::string_view kEvictSql = R"(
  WITH bound AS MATERIALIZED (SELECT {durable}),
  evicted AS (
    UPDATE {table} m SET owner_id = '', version = m.version + 1
    FROM bound
    WHERE m.mutex = $2 AND m.owner_id = $3 AND m.fencing_token = $4
    RETURNING m.mutex)
  SELECT mutex, pg_notify('{channel}', mutex) FROM evicted)";

// Who only looks is told the time before the rows were as they are: while rows are on their way to
// a reader that stands still, their owners renew, and none of them must look expired. A statement
// is said to begin when it is executed, and rows are as they were when its parameters were bound:
// each flight of ours is a transaction, which begins before both.
constexpr std::string_view kObserveSql = R"(
  SELECT m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token, {before}, c.place
  FROM unnest($1::text[]) WITH ORDINALITY AS c (mutex, place)
  LEFT JOIN {table} m ON m.mutex = c.mutex)";

constexpr std::string_view kListSql = R"(
  SELECT m.owner_id, m.acquired_at, m.ttl_at, m.transition_at, m.fencing_token, {before}, m.mutex
  FROM {table} m
  WHERE m.mutex COLLATE "C" >= $1 AND m.mutex COLLATE "C" < $2 AND starts_with(m.mutex, $3)
  ORDER BY m.mutex COLLATE "C" LIMIT $4)";

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

std::vector<Statement> make_statements(const Endpoint& endpoint) {
  std::vector<Statement> statements;
  const auto add = [&](const char* name, std::string_view text, std::vector<unsigned> types,
                       std::string_view skip = {}) {
    std::string sql(text);
    replace_all(sql, "{table}", endpoint.quoted_table());
    replace_all(sql, "{channel}", endpoint.table());
    replace_all(sql, "{durable}", kDurable);
    replace_all(sql, "{unflushed}", kUnflushed);
    replace_all(sql, "{now}", kNow);
    replace_all(sql, "{before}", kBefore);
    replace_all(sql, "{now_us}", kNowUs);
    replace_all(sql, "{skip}", skip);
    statements.push_back({name, std::move(sql), std::move(types)});
  };
  const std::vector<unsigned> batch{kText, kTexts, kTexts, kBigints, kBigints, kBigints};
  add("simba_take_one", kTakeOneSql, {kText, kText, kText, kBigint, kBigint, kBigint});
  add("simba_take_many", kTakeManySql, batch);
  add("simba_renew_one", kRenewSql, batch);
  add("simba_renew_many", kRenewSql, batch, "SKIP LOCKED");
  add("simba_release_one", kReleaseOneSql, {kText, kText, kText, kBigint});
  add("simba_release_many", kReleaseManySql, {kText, kTexts, kTexts, kBigints});
  add("simba_evict", kEvictSql, {kText, kText, kText, kBigint});
  add("simba_observe", kObserveSql, {kTexts});
  add("simba_list", kListSql, {kText, kText, kText, kBigint});
  return statements;
}

}  // namespace simba::postgres
