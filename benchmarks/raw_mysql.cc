#include "benchmarks/raw_mysql.h"

#include <mysql.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace simba::bench {
namespace {

constexpr std::uint64_t kTtlMs = 10'000, kLeaseMs = 16'000;
constexpr std::uint64_t kLimitMs = 937;  // what the library gives a claim of these times

constexpr const char* kCreate = R"(
  CREATE TABLE IF NOT EXISTS {table} (
    mutex         VARBINARY(66)   NOT NULL PRIMARY KEY,
    acquired_at   BIGINT UNSIGNED NOT NULL,
    ttl_at        BIGINT UNSIGNED NOT NULL,
    transition_at BIGINT UNSIGNED NOT NULL,
    owner_id      VARBINARY(128)  NOT NULL,
    version       INT UNSIGNED    NOT NULL,
    fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0
  ) ENGINE = InnoDB)";

constexpr const char* kSession =
    "SET NAMES utf8mb4; SET SESSION time_zone = '+00:00', autocommit = 1, lock_wait_timeout = 10,"
    " tx_read_only = {only_reads}, innodb_lock_wait_timeout = 10, max_statement_time = 30,"
    " sql_mode = 'STRICT_ALL_TABLES'; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

constexpr const char* kTake = R"({limited}
  INSERT INTO {table}
    (mutex, acquired_at, ttl_at, transition_at, owner_id, version, fencing_token)
  VALUES (?, (@us := {us}) DIV 1000, @us DIV 1000 + ?, @us DIV 1000 + ?, ?, 1,
          GREATEST(?, CAST(@us AS UNSIGNED)))
  ON DUPLICATE KEY UPDATE
    version = (version + (@won := (BINARY mutex = BINARY VALUES(mutex)
                 AND fencing_token < 9223372036854775807
                 AND (transition_at < (@us := {us}) DIV 1000
                      OR BINARY owner_id = BINARY VALUES(owner_id))))) & 2147483647,
    fencing_token = IF(@won, IF(BINARY owner_id = BINARY VALUES(owner_id)
                                  AND transition_at >= @us DIV 1000, fencing_token,
                       GREATEST(fencing_token + 1, VALUES(fencing_token),
                                CAST(@us AS UNSIGNED))), fencing_token),
    owner_id = IF(@won, VALUES(owner_id), owner_id),
    ttl_at = IF(@won, @us DIV 1000 + VALUES(ttl_at) - VALUES(acquired_at), ttl_at),
    transition_at =
      IF(@won, @us DIV 1000 + VALUES(transition_at) - VALUES(acquired_at), transition_at),
    acquired_at = IF(@won, @us DIV 1000, acquired_at)
  RETURNING mutex, owner_id, acquired_at, ttl_at, transition_at, fencing_token, {us} DIV 1000)";

constexpr const char* kTakeAgain = R"({limited}
  UPDATE {table} SET
    fencing_token = LAST_INSERT_ID(GREATEST(fencing_token + 1, {us})),
    acquired_at = fencing_token DIV 1000, ttl_at = acquired_at + ?, transition_at = acquired_at + ?,
    owner_id = ?, version = ((version + 1) & 2147483647)
  WHERE mutex = ? AND mutex = ? AND transition_at < {us} DIV 1000 AND fencing_token < {us}
    AND ? < {us})";

constexpr const char* kRelease = R"({limited}
  UPDATE {table} SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '',
    version = ((version + 1) & 2147483647)
      + 0 * LAST_INSERT_ID(IFNULL(IS_USED_LOCK(?), 0) + (IFNULL(IS_USED_LOCK(?), 0) << 32))
  WHERE mutex = ? AND mutex = ? AND owner_id = ?
    AND (? = 0 OR (fencing_token = ? OR fencing_token <= 4294967295)))";

constexpr const char* kNow = "CAST(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(3)) * 1000 AS UNSIGNED)";

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

[[noreturn]] void die(const char* doing, const char* why) {
  std::fprintf(stderr, "simba_bench: the raw loop cannot %s: %s\n", doing, why);
  std::exit(2);
}

struct Columns {
  char texts[2][256];
  std::uint64_t numbers[5];
  unsigned long lengths[2];
};

Columns& bind_columns(MYSQL_STMT* statement) {
  static thread_local Columns columns;
  MYSQL_BIND binds[7]{};
  for (int i = 0; i < 7; ++i) {
    if (i < 2) {
      binds[i].buffer_type = MYSQL_TYPE_STRING;
      binds[i].buffer = columns.texts[i];
      binds[i].buffer_length = sizeof columns.texts[i];
      binds[i].length = &columns.lengths[i];
    } else {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].is_unsigned = 1;
      binds[i].buffer = &columns.numbers[i - 2];
    }
  }
  mysql_stmt_bind_result(statement, binds);
  return columns;
}

}  // namespace

RawMysql::RawMysql(std::uint16_t port, const std::string& table)
    : connection_(mysql_init(nullptr)), table_(table) {
  if (mysql_real_connect(connection_, "127.0.0.1", "admin", "", "simba_db", port, nullptr,
                         CLIENT_MULTI_STATEMENTS) == nullptr) {
    die("connect", mysql_error(connection_));
  }
  ask(with_table(kSession));
  ask(with_table(kCreate));
  take_ = prepare(kTake);
  take_again_ = prepare(kTakeAgain);
  release_ = prepare(kRelease);
}

RawMysql::~RawMysql() {
  mysql_stmt_close(take_);
  mysql_stmt_close(take_again_);
  mysql_stmt_close(release_);
  mysql_close(connection_);
}

std::uint64_t RawMysql::id() const { return mysql_thread_id(connection_); }

std::string RawMysql::with_table(std::string sql) const {
  replace_all(sql, "{limited}",
              "SET STATEMENT tx_read_only = {only_reads},"
              " max_statement_time = CAST(? / 1000 AS DOUBLE) FOR");
  replace_all(sql, "{only_reads}", "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')");
  replace_all(sql, "{table}", table_);
  replace_all(sql, "{us}", "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)");
  replace_all(sql, "{now}", kNow);
  return sql;
}

MYSQL_STMT* RawMysql::prepare(const std::string& sql) const {
  const std::string text = with_table(sql);
  MYSQL_STMT* statement = mysql_stmt_init(connection_);
  if (mysql_stmt_prepare(statement, text.data(), text.size()) != 0) {
    die("prepare", mysql_stmt_error(statement));
  }
  return statement;
}

// `order`: s for the next text, n for the next number.
void RawMysql::run(MYSQL_STMT* statement, const std::vector<std::string>& texts,
                   const std::vector<std::uint64_t>& numbers, const char* order) {
  MYSQL_BIND binds[8]{};
  std::size_t text = 0, number = 0;
  for (std::size_t i = 0; order[i] != '\0'; ++i) {
    if (order[i] == 's') {
      binds[i].buffer_type = MYSQL_TYPE_STRING;
      binds[i].buffer = const_cast<char*>(texts[text].data());
      binds[i].buffer_length = texts[text++].size();
    } else {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].is_unsigned = 1;
      binds[i].buffer = const_cast<std::uint64_t*>(&numbers[number++]);
    }
  }
  if (mysql_stmt_bind_param(statement, binds) != 0 || mysql_stmt_execute(statement) != 0) {
    die("run", mysql_stmt_error(statement));
  }
}

std::string RawMysql::ask(const std::string& sql) {
  if (mysql_real_query(connection_, sql.data(), sql.size()) != 0) {
    return std::to_string(mysql_errno(connection_));
  }
  std::string value;
  changed_ = mysql_affected_rows(connection_);
  do {
    MYSQL_RES* rows = mysql_store_result(connection_);
    if (rows == nullptr) continue;
    if (char** const row = mysql_fetch_row(rows)) {
      for (unsigned i = 0; i < mysql_num_fields(rows); ++i) {
        value += (i > 0 ? "|" : "") + std::string(row[i] != nullptr ? row[i] : "");
      }
    }
    mysql_free_result(rows);
  } while (mysql_next_result(connection_) == 0);
  return value;
}

double RawMysql::questions() {
  const std::string answer = ask("SHOW GLOBAL STATUS LIKE 'Questions'");
  return std::atof(answer.substr(answer.find('|') + 1).c_str());
}

std::uint64_t RawMysql::take(const std::string& mutex, const std::string& owner) {
  if (std::exchange(released_, {}) == mutex) {
    run(take_again_, {owner, mutex, mutex}, {kLimitMs, kTtlMs, kLeaseMs, 0}, "nnnsssn");
    if (mysql_stmt_affected_rows(take_again_) == 1) return mysql_stmt_insert_id(take_again_);
  }
  run(take_, {mutex, owner}, {kLimitMs, kTtlMs, kLeaseMs, 1}, "nsnnsn");
  const Columns& columns = bind_columns(take_);
  if (mysql_stmt_store_result(take_) != 0 || mysql_stmt_fetch(take_) != 0) {
    die("read", mysql_stmt_error(take_));
  }
  const bool mine = owner == std::string(columns.texts[1], columns.lengths[1]);
  mysql_stmt_free_result(take_);
  return mine ? columns.numbers[3] : 0;
}

bool RawMysql::release(const std::string& mutex, const std::string& owner, std::uint64_t token) {
  run(release_, {table_ + mutex + 'a', table_ + mutex + 'b', mutex, mutex, owner},
      {kLimitMs, token, token}, "nsssssnn");
  const std::uint64_t waiters = mysql_stmt_insert_id(release_);
  const bool freed = mysql_stmt_affected_rows(release_) == 1;
  for (const std::uint64_t waiter : {waiters & 0xffffffff, waiters >> 32}) {
    if (freed && waiter != 0 && waiter != mine_) ring(std::to_string(waiter));
  }
  if (freed) released_ = mutex;
  return freed;
}

void RawMysql::ring(const std::string& waiter) {
  const std::string hand = "'" + table_ + "ring:" + waiter + "'";
  const std::string let_go = "DO RELEASE_LOCK(" + hand + ')';
  // The text ends at an error.
  if (!ask("KILL QUERY IF(GET_LOCK(" + hand + ", 0) = 1, " + waiter + ", 0);" + let_go).empty()) {
    ask(let_go);
  }
}

bool RawMysql::take_by_transaction(const std::string& mutex, const std::string& owner) {
  ask("BEGIN");
  ask(with_table(
      "UPDATE {table} SET acquired_at = {now}, ttl_at = {now} + 10000, transition_at = "
      "{now} + 16000, owner_id = '" +
      owner + "', version = version + 1 WHERE mutex = '" + mutex +
      "' AND (transition_at < {now} OR (owner_id = '" + owner + "' AND transition_at > {now}))"));
  const bool mine = changed_ == 1;
  ask(
      with_table("SELECT acquired_at, ttl_at, transition_at, owner_id, version, {now} FROM {table} "
                 "WHERE mutex = '" +
                 mutex + '\''));
  ask("COMMIT");
  return mine;
}

bool RawMysql::release_by_statement(const std::string& mutex, const std::string& owner) {
  ask(with_table(
      "UPDATE {table} SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', "
      "version = version + 1 WHERE mutex = '" +
      mutex + "' AND owner_id = '" + owner + '\''));
  return changed_ == 1;
}

void RawMysql::wait_at_bell(const std::string& mutex) {
  const std::string name = table_ + mutex;
  ask("SELECT IF(GET_LOCK('" + name + "a', 0) = 1, 1, GET_LOCK('" + name + "b', 0))");
}

void RawMysql::wait_for_ring(const std::string& mutex) {
  const std::string answer = ask(with_table(
      "SELECT IF(s.writes = " + writes_ + ", CASE WHEN IS_USED_LOCK('{table}gate') = " +
      "CONNECTION_ID() THEN SLEEP(2) WHEN GET_LOCK('{table}gate', 2) IS NULL THEN 1 ELSE 0 END, "
      "2), s.writes, {only_reads} FROM (SELECT IFNULL(SUM(version), 0) AS writes FROM {table} "
      "WHERE mutex IN ('" +
      mutex + "')) s"));
  if (const std::size_t bar = answer.find('|'); bar != answer.npos) {
    writes_ = answer.substr(bar + 1, answer.rfind('|') - bar - 1);
  }
}

}  // namespace simba::bench
