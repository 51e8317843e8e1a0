#include "benchmarks/raw_postgres.h"

#include <libpq-fe.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace simba::bench {
namespace {

constexpr const char* kTtlMs = "10000";
constexpr const char* kLeaseMs = "16000";
constexpr const char* kLockMs = "937";  // what the library gives a claim of these times
constexpr unsigned kText = 25, kBigint = 20;

constexpr const char* kCreate = R"(
  CREATE TABLE IF NOT EXISTS {table} (
    mutex         varchar(66)  COLLATE "C" NOT NULL PRIMARY KEY,
    acquired_at   bigint       NOT NULL,
    ttl_at        bigint       NOT NULL,
    transition_at bigint       NOT NULL,
    owner_id      varchar(128) COLLATE "C" NOT NULL,
    version       bigint       NOT NULL,
    fencing_token bigint       NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50))";

constexpr const char* kTake = R"(
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
      AND set_config('lock_timeout', $1, true) IS NOT NULL
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

constexpr const char* kRelease = R"(
  UPDATE {table} m SET
    acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', version = m.version + 1
  WHERE m.mutex = $2 AND m.owner_id = $3 AND ($4 = 0 OR m.fencing_token = $4)
    AND set_config('lock_timeout', $1, true) IS NOT NULL
    AND set_config('synchronous_commit', 'off', true) IS NOT NULL
  RETURNING m.mutex, pg_notify('{table}', m.mutex))";

constexpr const char* kSeedUpdate = R"(
  UPDATE {table} SET
    acquired_at = {now}, ttl_at = {now} + $3, transition_at = {now} + $4, owner_id = $2,
    version = version + 1, fencing_token = fencing_token + 1
  WHERE mutex = $1 AND (transition_at < {now} OR (owner_id = $2 AND transition_at > {now})))";

constexpr const char* kSeedRelease = R"(
  UPDATE {table} SET
    acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', version = version + 1
  WHERE mutex = $1 AND owner_id = $2)";

constexpr const char* kSeedSelect = R"(
  SELECT acquired_at, ttl_at, transition_at, owner_id, version, {now} FROM {table}
  WHERE mutex = $1)";

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

[[noreturn]] void die(PGconn* connection, const std::string& doing) {
  std::fprintf(stderr, "simba_bench: the raw loop cannot %s: %s\n", doing.c_str(),
               PQerrorMessage(connection));
  std::exit(2);
}

}  // namespace

RawPostgres::RawPostgres(const std::string& conninfo, const std::string& table)
    : connection_(PQconnectdb(conninfo.c_str())), table_(table) {
  if (PQstatus(connection_) != CONNECTION_OK) die(connection_, "connect");
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  execute(with_table(kCreate));
  execute("SET plan_cache_mode = force_generic_plan");
  const unsigned take[] = {kText, kText, kText, kBigint, kBigint, kBigint};
  const unsigned release[] = {kText, kText, kText, kBigint};
  const unsigned update[] = {kText, kText, kBigint, kBigint};
  prepare("take", kTake, std::size(take), take);
  prepare("release", kRelease, std::size(release), release);
  prepare("seed_update", kSeedUpdate, std::size(update), update);
  prepare("seed_select", kSeedSelect, 1, update);
  prepare("seed_release", kSeedRelease, 2, update);
}

RawPostgres::~RawPostgres() { PQfinish(connection_); }

std::string RawPostgres::with_table(std::string sql) const {
  replace_all(sql, "{table}", table_);
  replace_all(sql, "{now}", "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint");
  replace_all(sql, "{now_us}", "floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint");
  return sql;
}

void RawPostgres::execute(const std::string& sql) {
  PGresult* result = PQexec(connection_, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) die(connection_, sql);
  PQclear(result);
}

void RawPostgres::prepare(const char* name, std::string sql, int parameters,
                          const unsigned* types) {
  sql = with_table(std::move(sql));
  PGresult* result = PQprepare(connection_, name, sql.c_str(), parameters, types);
  if (PQresultStatus(result) != PGRES_COMMAND_OK) die(connection_, sql);
  PQclear(result);
}

PGresult* RawPostgres::run(const char* name, int parameters, const char* const* values) {
  PGresult* result = PQexecPrepared(connection_, name, parameters, values, nullptr, nullptr, 0);
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) die(connection_, name);
  return result;
}

std::int64_t RawPostgres::take(const std::string& mutex, const std::string& owner) {
  const char* values[] = {kLockMs, mutex.c_str(), owner.c_str(), kTtlMs, kLeaseMs, "1"};
  PGresult* result = run("take", std::size(values), values);
  const bool mine = PQntuples(result) == 1 && owner == PQgetvalue(result, 0, 0);
  const std::int64_t token = mine ? std::atoll(PQgetvalue(result, 0, 4)) : 0;
  PQclear(result);
  return token;
}

bool RawPostgres::release(const std::string& mutex, const std::string& owner, std::int64_t token) {
  const std::string number = std::to_string(token);
  const char* values[] = {kLockMs, mutex.c_str(), owner.c_str(), number.c_str()};
  PGresult* result = run("release", std::size(values), values);
  const bool freed = PQntuples(result) == 1;
  PQclear(result);
  return freed;
}

bool RawPostgres::changes_one(const char* name, int parameters, const char* const* values) {
  PGresult* result = run(name, parameters, values);
  const bool one = std::string(PQcmdTuples(result)) == "1";
  PQclear(result);
  return one;
}

bool RawPostgres::take_by_transaction(const std::string& mutex, const std::string& owner) {
  execute("BEGIN");
  const char* values[] = {mutex.c_str(), owner.c_str(), kTtlMs, kLeaseMs};
  const bool mine = changes_one("seed_update", std::size(values), values);
  PQclear(run("seed_select", 1, values));
  execute("COMMIT");
  return mine;
}

bool RawPostgres::release_by_statement(const std::string& mutex, const std::string& owner) {
  const char* values[] = {mutex.c_str(), owner.c_str()};
  return changes_one("seed_release", std::size(values), values);
}

void RawPostgres::listen() { execute("LISTEN " + table_); }

void RawPostgres::wait_for_notification() {
  while (true) {
    if (PQconsumeInput(connection_) == 0) die(connection_, "listen");
    if (PGnotify* notification = PQnotifies(connection_)) {
      PQfreemem(notification);
      return;
    }
    pollfd readable{PQsocket(connection_), POLLIN, 0};
    poll(&readable, 1, -1);
  }
}

}  // namespace simba::bench
