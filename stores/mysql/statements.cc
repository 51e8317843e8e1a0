#include "stores/mysql/statements.h"

#include <algorithm>
#include <array>

#include "stores/kit/claims.h"
#include "stores/mysql/literal.h"

namespace simba::mysql {
namespace {

// How a claim is decided.
//
// By the assignments of INSERT ... ON DUPLICATE KEY UPDATE (or by the WHERE of an UPDATE), which
// the server evaluates one after the other, from left to right, once the row is locked. {us} is the
// clock in microseconds, read at that moment: NOW() would be that of the statement's start, before
// the wait. So that all of a row is decided by one reading, the first assignment leaves the
// decision and the time in variables of the session. A row that is not won is assigned what it
// holds, which writes nothing.
//
// A token is at least the clock, so that it grows also where a failover or a deleted row has
// forgotten the last one. A table of the JVM project before 3.3 has no token: there it is the
// version at the acquisition.
//
//   {mutex}, {owner}     the column as bytes: collations take other spellings for the same
//   {key}                the name of a claim, as the column compares it
//   {holds_key}          the column can hold that name, and puts no question marks in it
//   {holds_owner}        likewise with the id of a claim
//   {as_owner}           the id of a claim, as the column holds it
//   {token}, {most}      the column of the token, and its largest
//   {writes}             where nothing goes before the statement: nothing is written on a replica
//   {bump}               the next version: JVM Simba reads it as a number of 31 bits

constexpr std::string_view kUs = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";

// At the start of the statement, before the rows are as they are: while they are on their way to a
// reader, or the server stands still in between, their owners renew, and none of them must look
// expired.
constexpr std::string_view kUsBefore = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)";

// In the first statement of a connection the variable has no type yet, and GREATEST would compare,
// and give back, a double.
constexpr std::string_view kTaken = "CAST(@simba_us AS UNSIGNED)";

constexpr std::string_view kRow =
    "k.mutex, k.owner_id, k.acquired_at, k.ttl_at, k.transition_at, k.{token}, {us} DIV 1000";

// Without names a table of six columns is meant, and no other: once it has got tokens, a connection
// that does not know must not number another term by the version.
constexpr std::string_view kInsert = "INSERT INTO {table}{columns}";
constexpr std::string_view kColumns =
    " (mutex, acquired_at, ttl_at, transition_at, owner_id, version, fencing_token)";

// {t} is the row that is there.
constexpr std::string_view kWon =
    "(@simba_won := (BINARY {t}.mutex = BINARY VALUES(mutex) AND {t}.{token} < {most}"
    " AND ({t}.transition_at < (@simba_us := {us}) DIV 1000"
    " OR BINARY {t}.owner_id = BINARY VALUES(owner_id))))";
// The same owner again, whose answer was lost.
constexpr std::string_view kAgain =
    "BINARY {t}.owner_id = BINARY VALUES(owner_id)"
    " AND {t}.transition_at >= @simba_us DIV 1000";
constexpr std::string_view kTakeWithToken =
    " version = ({t}.version + {won}) & 2147483647,"
    " fencing_token = IF(@simba_won, IF({again}, {t}.fencing_token,"
    " GREATEST({t}.fencing_token + 1, VALUES(fencing_token), {taken})), {t}.fencing_token),";
constexpr std::string_view kTakeWithVersion =
    " version = IF({won},"
    " IF({again}, {t}.version, GREATEST({t}.version + 1, VALUES(version))), {t}.version),";
constexpr std::string_view kTakeRest =
    " owner_id = IF(@simba_won, VALUES(owner_id), {t}.owner_id),"
    " ttl_at = IF(@simba_won,"
    " @simba_us DIV 1000 + VALUES(ttl_at) - VALUES(acquired_at), {t}.ttl_at),"
    " transition_at = IF(@simba_won,"
    " @simba_us DIV 1000 + VALUES(transition_at) - VALUES(acquired_at), {t}.transition_at),"
    " acquired_at = IF(@simba_won, @simba_us DIV 1000, {t}.acquired_at)";

// A new row is a term too.
constexpr std::string_view kNewWithToken =
    " VALUES ({1}, (@simba_us := {us}) DIV 1000, @simba_us DIV 1000 + {2},"
    " @simba_us DIV 1000 + {3}, {4}, 1, GREATEST({5}, {taken}))";
constexpr std::string_view kNewWithVersion =
    " VALUES ({1}, (@simba_us := {us}) DIV 1000, @simba_us DIV 1000 + {2},"
    " @simba_us DIV 1000 + {3}, {4}, {5})";

// What LAST_INSERT_ID(x) is given comes back in the answer: here the token, which is the clock, and
// so tells when the lease began. For a row that is there, is free, and has no token ahead of the
// clock; no rows to send makes it the faster one.
constexpr std::string_view kTakeFree =
    "UPDATE {table} SET fencing_token = LAST_INSERT_ID(GREATEST(fencing_token + 1, {us})),"
    " acquired_at = fencing_token DIV 1000, ttl_at = acquired_at + ?,"
    " transition_at = acquired_at + ?, owner_id = ?, version = {bump}"
    " WHERE mutex = ? AND {mutex} = ? AND transition_at < {us} DIV 1000"
    " AND fencing_token < {us} AND ? < {us}{writes}";

// Here the start of the new lease.
constexpr std::string_view kRenewOne =
    "UPDATE {table} SET acquired_at = LAST_INSERT_ID({us} DIV 1000), ttl_at = acquired_at + ?,"
    " transition_at = acquired_at + ?, version = {bump}"
    " WHERE mutex = ? AND {mutex} = ? AND {owner} = ? AND {same_token}"
    " AND transition_at >= {us} DIV 1000{writes}";
constexpr std::string_view kRenewMany =
    " version = IF(@simba_won := (BINARY {t}.owner_id = BINARY VALUES(owner_id)"
    " AND {same_token_values} AND {t}.transition_at >= (@simba_us := {us}) DIV 1000),"
    " {bump}, {t}.version),"
    " ttl_at = IF(@simba_won, @simba_us DIV 1000 + VALUES(ttl_at), {t}.ttl_at),"
    " transition_at = IF(@simba_won,"
    " @simba_us DIV 1000 + VALUES(transition_at), {t}.transition_at),"
    " acquired_at = IF(@simba_won, @simba_us DIV 1000, {t}.acquired_at)";

// The connections that hold the two locks of the doorbell come back in the answer.
constexpr std::string_view kWaiters =
    " + 0 * LAST_INSERT_ID(IFNULL(IS_USED_LOCK(?), 0) + (IFNULL(IS_USED_LOCK(?), 0) << 32))";
constexpr std::string_view kReleaseOne =
    "UPDATE {table} SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '',"
    " version = {bump}{waiters}"
    " WHERE mutex = ? AND {mutex} = ? AND {owner} = ? AND (? = 0 OR {same_token}){writes}";

constexpr std::string_view kObserveOne =
    "SELECT {row} FROM (SELECT 1 AS one) d LEFT JOIN {table} k ON k.mutex = ?";

// Rows that somebody else has locked are skipped; by its key alone, or the rows of a small table
// would all be read, and so locked, and skipped by everybody else. What is locked here is met by
// the INSERT, which so never makes a row.
constexpr std::string_view kSelectMany =
    " SELECT k.mutex, 0, c.ttl, c.lease, {as_owner}, {new_version}"
    " FROM {claims} STRAIGHT_JOIN {table} k{by_key} ON k.mutex = {key}"
    " WHERE {k.mutex} = c.mutex AND {fits}"
    " FOR UPDATE SKIP LOCKED ON DUPLICATE KEY UPDATE";
constexpr std::string_view kMakeMissing =
    "INSERT IGNORE INTO {table} (mutex, acquired_at, ttl_at, transition_at, owner_id, version)"
    " SELECT {key}, 0, 0, 0, '', 0 FROM {claims} LEFT JOIN {table} k ON k.mutex = {key}"
    " WHERE k.mutex IS NULL AND {holds_key};";
constexpr std::string_view kReadMany =
    "SELECT {row}, c.place, k.acquired_at >= @simba_from"
    " FROM {claims} LEFT JOIN {table} k ON k.mutex = {key}";

constexpr std::string_view kFitsTake =
    "(k.transition_at < {us} DIV 1000 OR {k.owner} = c.owner) AND k.{token} < {most}"
    " AND {holds_owner}";
constexpr std::string_view kFitsRenewal =
    "{k.owner} = c.owner AND {same_token_claim} AND k.transition_at >= {us} DIV 1000";
constexpr std::string_view kFitsRelease =
    "{k.owner} = c.owner AND (c.token = 0 OR {same_token_claim})";

constexpr std::string_view kReleaseMany =
    " version = {bump}, acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = ''";

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

// Of who only looks.
std::string as_it_begins(std::string sql) {
  replace_all(sql, kUs, kUsBefore);
  return sql;
}

std::string bytes_of(const std::string& column, const Shape::Text& type) {
  return type.is_binary() ? column : "BINARY CONVERT(" + column + " USING utf8mb4)";
}

// Names of character sets come from the server's catalog.
std::string converted(const std::string& value, const Shape::Text& type) {
  if (type.is_binary()) return value;
  return "CONVERT(CONVERT(" + value + " USING utf8mb4) USING " + type.charset + ") COLLATE " +
         type.collation;
}

std::string is_held(const std::string& value, const Shape::Text& type) {
  return type.is_binary() ? "TRUE" : bytes_of(converted(value, type), type) + " = " + value;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::uint64_t ttl_of(const Claim& claim) { return static_cast<std::uint64_t>(claim.ttl.count()); }
std::uint64_t lease_of(const Claim& claim) {
  return static_cast<std::uint64_t>((claim.ttl + claim.transition).count());
}

// A UTF-8 text, where bytes alone would be compared otherwise than the column does.
std::string text_literal(std::string_view bytes) { return "_utf8mb4 " + literal(bytes); }

void fill(std::string& text, std::span<const std::string> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    replace_all(text, '{' + std::to_string(i + 1) + '}', values[i]);
  }
}

// The arguments one after the other.
std::string answered(std::string text, std::span<const std::string> values) {
  std::size_t at = 0;
  for (const std::string& value : values) {
    at = text.find('?', at);
    text.replace(at, 1, value);
    at += value.size();
  }
  return text;
}

}  // namespace

Statements::Statements(const Endpoint& endpoint, const Shape& its_shape)
    : shape(its_shape), table_(endpoint.quoted_table()) {
  const std::string limit = shape.is_mariadb
                                ? "SET STATEMENT " + shape.as_the_server_reads +
                                      ", max_statement_time = CAST(? / 1000 AS DOUBLE) FOR "
                                : "";
  const std::string n = shape.is_mariadb ? "n" : "";
  std::string take =
      limit + std::string(kInsert) +
      std::string(shape.has_token ? kNewWithToken : kNewWithVersion) +
      " ON DUPLICATE KEY UPDATE{take} RETURNING mutex, owner_id, acquired_at, ttl_at,"
      " transition_at, {token}, {us} DIV 1000";
  const std::array<std::string, 5> marks{"?", "?", "?", "?", "?"};
  fill(take, marks);
  // MySQL has no RETURNING: take_one().
  prepared.push_back({filled(shape.is_mariadb ? take : "DO 1"), shape.is_mariadb ? n + "snnsn" : "",
                      shape.is_mariadb ? kRowColumns : ""});
  prepared.push_back(
      {filled(shape.has_token ? limit + std::string(kTakeFree) : "DO 1"), n + "nnsssn", ""});
  prepared.push_back({filled(limit + std::string(kRenewOne)), n + "nnsssn", ""});
  prepared.push_back({filled(limit + std::string(kReleaseOne)), n + "sssssnn", ""});
  prepared.push_back({as_it_begins(filled(kObserveOne)), "s", kRowColumns});
}

std::string only_reads_sql(const std::string& value) {
  return "CAST(" + value + " AS CHAR) NOT IN ('0', 'OFF')";
}

std::string Statements::filled(std::string_view text) const {
  const Shape::Text& m = shape.mutex;
  const Shape::Text& o = shape.owner;
  const bool token = shape.has_token;
  std::string sql(text);
  const auto replace = [&](std::string_view what, std::string_view by) {
    replace_all(sql, what, by);
  };
  replace("{take}",
          std::string(token ? kTakeWithToken : kTakeWithVersion) + std::string(kTakeRest));
  replace("{writes}", shape.is_mariadb ? "" : " AND NOT (" + only_reads_sql() + ")");
  replace("{won}", kWon);
  replace("{again}", kAgain);
  replace("{taken}", kTaken);
  replace("{waiters}", kWaiters);
  replace("{row}", kRow);
  // Without a token in the row, the wire id alone says which term it is: none is used twice. So too
  // where the column was added during the term, which then holds a version.
  const auto same = [&](const std::string& held, const std::string& claimed) {
    return '(' + held + " = " + claimed + " OR " + held + " <= " + number(kMostVersion) + ')';
  };
  replace("{same_token}", token ? same("fencing_token", "?") : "? >= 0");
  replace("{same_token_values}",
          token ? same("{t}.fencing_token", "VALUES(fencing_token)") : "TRUE");
  replace("{same_token_claim}", token ? same("k.fencing_token", "c.token") : "TRUE");
  // Of who is evicted, it is what was seen, and JVM contenders use an id again.
  replace("{seen_token}", token ? "fencing_token IN (?, 0)" : "? >= 0");
  replace("{by_key}", shape.has_primary_key ? " FORCE INDEX (PRIMARY)" : "");
  replace("{columns}", token ? kColumns : "");
  replace("{new_version}", token ? "1, c.token" : "c.token");
  replace("{bump}", token ? "(({t}.version + 1) & 2147483647)" : "({t}.version + 1)");
  replace("{token}", token ? "fencing_token" : "version");
  replace("{most}", token ? "9223372036854775807" : number(kMostVersion));
  replace("{mutex}", bytes_of("mutex", m));
  replace("{owner}", bytes_of("owner_id", o));
  replace("{k.mutex}", bytes_of("k.mutex", m));
  replace("{k.owner}", bytes_of("k.owner_id", o));
  replace("{key}", converted("c.mutex", m));
  replace("{holds_key}", is_held("c.mutex", m));
  replace("{holds_owner}", is_held("c.owner", o));
  replace("{as_owner}", converted("c.owner", o));
  replace("{us}", kUs);
  replace("{t}", table_);
  replace("{table}", table_);
  return sql;
}

std::string Statements::limited(milliseconds limit) const {
  if (!shape.is_mariadb) return "SET SESSION " + shape.as_the_server_reads + ';';
  const std::string ms = std::to_string(limit.count() % 1'000);
  return "SET STATEMENT " + shape.as_the_server_reads +
         ", max_statement_time = " + std::to_string(limit.count() / 1'000) + '.' +
         std::string(3 - ms.size(), '0') + ms + " FOR ";
}

namespace {

// Many claims are a document of hexadecimal digits and numbers, which both servers read as a table.
std::string claims_table(std::span<const Claim> claims) {
  std::string sql =
      "(SELECT place, UNHEX(m) AS mutex, UNHEX(o) AS owner, ttl, lease, token FROM JSON_TABLE('[";
  for (const Claim& claim : claims) {
    sql += &claim == claims.data() ? "[\"" : ",[\"";
    append_hex(sql, claim.mutex);
    sql += "\",\"";
    append_hex(sql, claim.wire_id);
    sql += "\"," + number(ttl_of(claim)) + ',' + number(lease_of(claim)) + ',' +
           number(claim.token) + ']';
  }
  return sql +
         "]', '$[*]' COLUMNS (place FOR ORDINALITY, m VARCHAR(140) PATH '$[0]',"
         " o VARCHAR(260) PATH '$[1]', ttl BIGINT PATH '$[2]', lease BIGINT PATH '$[3]',"
         " token BIGINT PATH '$[4]')) j) c";
}

std::string bells_table(std::span<const std::string> bells) {
  std::string sql = "(SELECT place, UNHEX(h) AS bell FROM JSON_TABLE('[";
  for (const std::string& bell : bells) {
    sql += &bell == bells.data() ? "\"" : ",\"";
    append_hex(sql, bell);
    sql += '"';
  }
  return sql + "]', '$[*]' COLUMNS (place FOR ORDINALITY, h VARCHAR(140) PATH '$')) j) b";
}

}  // namespace

std::string Statements::contend_many(std::string_view fits, std::string_view assignments,
                                     std::span<const Claim> claims, milliseconds limit) const {
  std::string sql =
      limited(limit) + std::string(kInsert) + std::string(kSelectMany) + std::string(assignments);
  replace_all(sql, "{fits}", fits);
  sql = filled(sql);
  replace_all(sql, "{claims}", claims_table(claims));
  return sql + ';';
}

std::string Statements::take_one(const Claim& claim) const {
  std::string sql = std::string(kInsert) +
                    std::string(shape.has_token ? kNewWithToken : kNewWithVersion) +
                    " ON DUPLICATE KEY UPDATE{take};" + std::string(kObserveOne);
  const std::string name = text_literal(claim.mutex);
  const std::array<std::string, 5> values{name, number(ttl_of(claim)), number(lease_of(claim)),
                                          text_literal(claim.wire_id), number(claim.floor + 1)};
  sql = limited({}) + filled(sql);
  fill(sql, values);
  return answered(std::move(sql), {&name, 1});
}

namespace {

std::vector<Claim> with_floors(std::span<const Claim> claims) {
  std::vector<Claim> out(claims.begin(), claims.end());
  for (Claim& claim : out) claim.token = claim.floor + 1;
  return out;
}

constexpr std::string_view kFrom = "SET @simba_from = {us} DIV 1000;";

}  // namespace

std::string Statements::take_many(std::span<const Claim> claims, milliseconds limit) const {
  std::string missing = filled(kMakeMissing), read = filled(kReadMany);
  const std::string table = claims_table(claims);
  replace_all(missing, "{claims}", table);
  replace_all(read, "{claims}", table);
  // A row that somebody else is about to insert cannot be skipped: whoever waits for it has time
  // left to ask alone.
  const milliseconds first = std::max(limit / 4, milliseconds{1});
  return filled(kFrom) + limited(first) + missing +
         contend_many(kFitsTake, "{take}", with_floors(claims), std::max(limit - first, first)) +
         read;
}

std::string Statements::renew_many(std::span<const Claim> claims, milliseconds limit) const {
  std::string read = filled(kReadMany);
  replace_all(read, "{claims}", claims_table(claims));
  return filled(kFrom) + contend_many(kFitsRenewal, kRenewMany, claims, limit) + read;
}

std::string Statements::release_many(std::span<const Claim> claims,
                                     std::span<const std::string> bells, milliseconds limit) const {
  std::string read =
      "SELECT c.place, k.owner_id, IFNULL(IS_USED_LOCK(CONCAT(b.bell, 'a')), 0),"
      " IFNULL(IS_USED_LOCK(CONCAT(b.bell, 'b')), 0) FROM {claims}"
      " JOIN {bells} ON b.place = c.place"
      " LEFT JOIN {table} k ON k.mutex = {key} AND {k.mutex} = c.mutex";
  read = filled(read);
  replace_all(read, "{bells}", bells_table(bells));
  replace_all(read, "{claims}", claims_table(claims));
  return contend_many(kFitsRelease, kReleaseMany, claims, limit) + read;
}

std::string Statements::observe_many(std::span<const std::string_view> mutexes) const {
  std::vector<Claim> claims;
  for (const std::string_view mutex : mutexes) claims.push_back({mutex, {}, 0, 0, {}, {}});
  std::string read = as_it_begins(filled(kReadMany));
  replace_all(read, "{claims}", claims_table(claims));
  return read;
}

std::string Statements::row(std::string_view mutex) const {
  const std::string name = text_literal(mutex);
  return answered(as_it_begins(filled("SELECT {row}, k.version FROM (SELECT 1 AS one) d"
                                      " LEFT JOIN {table} k ON k.mutex = ?")),
                  {&name, 1});
}

std::string Statements::evict(const Claim& term, Eviction how, const std::string& bell,
                              milliseconds limit) const {
  const std::array<std::string, 6> values{literal(bell + 'a'),      literal(bell + 'b'),
                                          text_literal(term.mutex), literal(term.mutex),
                                          literal(term.wire_id),    number(term.token)};
  const std::string free_now =
      how == Eviction::kFreeNow ? "acquired_at = 0, ttl_at = 0, transition_at = 0, " : "";
  return limited(limit) +
         answered(filled("UPDATE {table} SET " + free_now +
                         "owner_id = '', version = {bump}{waiters}"
                         " WHERE mutex = ? AND {mutex} = ? AND {owner} = ? AND {seen_token}"),
                  values);
}

std::string Statements::list(std::string_view prefix, std::string_view after,
                             std::size_t limit) const {
  const std::string from = literal(kit::first_of_page(prefix, after));
  std::string sql = filled("SELECT {row} FROM {table} k WHERE {k.mutex} >= " + from +
                           " AND LEFT({k.mutex}, " + number(prefix.size()) +
                           ") = " + literal(prefix) + " ORDER BY {k.mutex} LIMIT " + number(limit));
  return as_it_begins(std::move(sql));
}

}  // namespace simba::mysql
