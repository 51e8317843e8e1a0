#include "stores/mysql/bell.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "stores/mysql/literal.h"
#include "stores/mysql/schema.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {
namespace {

using namespace std::chrono_literals;

// How often a place is looked for that others have.
constexpr std::chrono::seconds kTryAgain{2};
// Not longer: nobody can alter the table meanwhile.
constexpr std::chrono::seconds kSleep{2};
// After a ring: whoever was woken takes the mutex meanwhile, and the look before the next sleep
// finds nobody who still waits for it.
constexpr auto kAfterRing = 1ms;
// Somebody alters the table, and waits for those who wait at the gate.
constexpr auto kAfterDeadlock = 100ms;

std::string hex(std::uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
  return out;
}

// FNV-1a.
std::uint64_t hash(std::initializer_list<std::string_view> parts) {
  std::uint64_t value = 14'695'981'039'346'656'037ULL;
  for (const std::string_view part : parts) {
    for (const char c : part) {
      value = (value ^ static_cast<unsigned char>(c)) * 1'099'511'628'211ULL;
    }
    value *= 1'099'511'628'211ULL;  // where a part ends
  }
  return value;
}

// Throws where it is our own connection that is lost.
void note_unheard(Connection& connection, const Failure& error) {
  if (error.is(number::kKillDenied)) {
    connection.endpoint().note_once(
        Endpoint::Note::kForeignWaiter,
        "somebody waits as another user of the server, and cannot be woken: he looks every two "
        "seconds; contenders of one mutex should have one user");
  } else if (!error.is(number::kUnknownThread) && error.errc() == Errc::kUnreachable) {
    throw Failure(error);
  }
}

}  // namespace

std::uint64_t hash_of(const Endpoint& endpoint, std::string_view mutex) {
  return hash({endpoint.options().database, endpoint.table(), mutex});
}

std::string gate_of(const Endpoint& endpoint) {
  return "simba:gate:" + hex(hash({endpoint.options().database, endpoint.table()}));
}

std::string bell_of(const Endpoint& endpoint, std::string_view mutex) {
  return "simba:" + hex(hash_of(endpoint, mutex)) + ':';
}

void ring(Connection& connection, std::uint64_t waiter, LocalTime deadline) {
  const std::string id = std::to_string(waiter), hand = literal("simba:ring:" + id);
  const std::string let_go = "DO RELEASE_LOCK(" + hand + ")";
  try {
    // In one text: a ring that finds the hand taken is none, so nobody may keep it for as long as
    // he is far away, or stands still. There is no connection 0: whoever finds another ringing
    // leaves it at that.
    connection.query("KILL QUERY IF(GET_LOCK(" + hand + ", 0) = 1, " + id + ", 0);" + let_go,
                     deadline);
  } catch (const Failure& error) {
    note_unheard(connection, error);
    connection.query(let_go, deadline);  // it ended at the error
  }
}

BellSource::BellSource(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<Bells> bells,
                       const kit::StopSignal& stop)
    : endpoint_(std::move(endpoint)), bells_(std::move(bells)), connection_(*endpoint_, stop) {
  prepare_connection(connection_, BootClock::now() + endpoint_->connect_timeout());
  look_for_cluster();
  if (connection_.only_reads(BootClock::now() + endpoint_->connect_timeout())) refuse_reader();
  // Where nothing is waited for it says nothing for long: a year is the most there is.
  connection_.query("SET SESSION innodb_lock_wait_timeout = 1, wait_timeout = 31536000",
                    BootClock::now() + endpoint_->connect_timeout());
  bells_->connection_id = connection_.id();
}

BellSource::~BellSource() {
  bells_->connection_id = 0;
  for (const auto& [mutex, held] : held_) held.bell->is_live = false;
}

// Such locks are of one node. Whoever is on the same one is heard; who is not, is polled for.
void BellSource::look_for_cluster() {
  const LocalTime deadline = BootClock::now() + endpoint_->connect_timeout();
  Result answer = connection_.query("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'", deadline);
  is_in_cluster_ = answer.next() && answer.text(1) == "ON";
  if (!is_in_cluster_) return;
  endpoint_->note_once(Endpoint::Note::kNoDoorbell,
                       "the server is a node of a Galera cluster: a waiter hears at once of a "
                       "release on the same node, and polls for those on others once a second");
}

// Nobody who releases is here, so nobody rings: who waits has to ask, and a place at the bell of
// the server that writes is looked for again and again.
void BellSource::refuse_reader() const {
  throw Error(Errc::kUnreachable,
              "mysql at " + endpoint_->where() +
                  ": the server only reads (it is a replica, or read_only is on), and nobody is "
                  "woken there");
}

bool BellSource::has_slot() const {
  return std::any_of(held_.begin(), held_.end(), [](const auto& each) { return each.second.slot; });
}

bool BellSource::lacks_slot() const {
  return std::any_of(held_.begin(), held_.end(),
                     [](const auto& each) { return !each.second.slot; });
}

void BellSource::read(const kit::StopSignal& stop, const Hint& hint) {
  if (std::exchange(was_rung_, false) && !stop.pause(kAfterRing)) return;
  bells_->clear_descriptor();
  try {
    if (is_unsure_) start_over();
    is_unsure_ = true;
    register_wanted(hint);
    is_unsure_ = false;
    if (!has_slot()) return idle(stop);
    wait_in_server(stop);
  } catch (const Failure& error) {
    if (error.is(number::kDeadlock) || error.is(number::kLockDeadlock)) {
      stop.pause(kAfterDeadlock);
      return;
    }
    if (!error.is(number::kInterrupted)) throw;
    was_rung_ = true;
  }
  if (was_rung_) hint({});
}

// A ring, or a deadlock, ended a statement half way: which locks it has got or given back nobody
// knows, and one that is got twice has to be given back twice.
void BellSource::start_over() {
  for (const auto& [mutex, held] : held_) held.bell->is_live = false;
  held_.clear();
  try_again_ = {};
  connection_.query("DO RELEASE_ALL_LOCKS()", BootClock::now() + endpoint_->connect_timeout());
}

// Who only watches leaves its place to a contender that has none.
void BellSource::give_way() {
  std::string sql;
  std::vector<Held*> asked;
  for (auto& [mutex, held] : held_) {
    if (held.slot != 'b' || held.contends) continue;
    const std::string bell = bell_of(*endpoint_, mutex);
    sql += (sql.empty() ? "SELECT IF(IS_USED_LOCK(" : ", IF(IS_USED_LOCK(") + literal(bell + 'c') +
           ") IS NULL, 0, RELEASE_LOCK(" + literal(bell + 'b') + "))";
    asked.push_back(&held);
  }
  if (asked.empty()) return;
  Result gone = connection_.query(sql, BootClock::now() + endpoint_->connect_timeout());
  if (!gone.next()) refuse_answer(endpoint_->where(), "has no row");
  for (unsigned i = 0; i < asked.size(); ++i) {
    if (gone.number(i) == 0) continue;
    asked[i]->slot = 0;
    asked[i]->bell->is_live = false;
  }
}

void BellSource::let_go(const std::vector<Bells::Wanted>& wanted) {
  std::string sql;
  const auto give_back = [&](const std::string& mutex, char letter) {
    sql += (sql.empty() ? "DO RELEASE_LOCK(" : ", RELEASE_LOCK(") +
           literal(bell_of(*endpoint_, mutex) + letter) + ')';
  };
  for (auto it = held_.begin(); it != held_.end();) {
    const bool is_wanted =
        std::any_of(wanted.begin(), wanted.end(),
                    [&](const Bells::Wanted& each) { return each.bell == it->second.bell; });
    if (!is_wanted) it->second.bell->is_live = false;
    if (!is_wanted && it->second.slot != 0) give_back(it->first, it->second.slot);
    if (it->second.asks && (!is_wanted || it->second.slot != 0)) {
      give_back(it->first, 'c');
      it->second.asks = false;
    }
    if (!is_wanted) writes_ = kUnknown;
    it = is_wanted ? std::next(it) : held_.erase(it);
  }
  if (!sql.empty()) connection_.query(sql, BootClock::now() + endpoint_->connect_timeout());
}

// 1 or 2: place a or b; 3: none, and others are asked for theirs; 0: none.
std::string BellSource::try_sql(const Bells::Wanted& wanted, bool asks) const {
  const std::string bell = bell_of(*endpoint_, wanted.mutex);
  const auto get = [&](char letter) { return "GET_LOCK(" + literal(bell + letter) + ", 0) = 1"; };
  if (!wanted.contends) {
    return "IF(IS_USED_LOCK(" + literal(bell + 'c') + ") IS NULL, IF(" + get('b') + ", 2, 0), 0)";
  }
  return "IF(" + get('b') + ", 2, IF(" + get('a') + ", 1, " +
         (asks ? "0" : "IF(" + get('c') + ", 3, 0)") + "))";
}

void BellSource::register_wanted(const Hint& hint) {
  const LocalTime now = BootClock::now();
  const std::vector<Bells::Wanted> wanted = bells_->all(now);
  let_go(wanted);
  if (std::exchange(is_asked_, false)) give_way();
  const bool tries_again = now >= try_again_;
  std::vector<const Bells::Wanted*> tried;
  std::string sql;
  for (const Bells::Wanted& each : wanted) {
    const auto it = held_.find(each.mutex);
    const bool tried_for_all = it != held_.end() && it->second.contends == each.contends;
    if (it != held_.end() && it->second.slot != 0) it->second.contends = each.contends;
    if (it != held_.end() && (it->second.slot != 0 || (tried_for_all && !tries_again))) continue;
    sql += (sql.empty() ? "SELECT " + only_reads_sql() : "") + ", " +
           try_sql(each, it != held_.end() && it->second.asks);
    tried.push_back(&each);
  }
  if (tried.empty()) return;
  Result got = connection_.query(sql, now + endpoint_->connect_timeout());
  if (!got.next()) refuse_answer(endpoint_->where(), "has no row");
  if (got.number(0) != 0) refuse_reader();
  for (unsigned i = 0; i < tried.size(); ++i) {
    const std::uint64_t slot = got.number(i + 1);
    if (!held_.contains(tried[i]->mutex)) writes_ = kUnknown;
    Held& held = held_[tried[i]->mutex];
    held = {tried[i]->bell,
            slot == 1   ? 'a'
            : slot == 2 ? 'b'
                        : '\0',
            tried[i]->contends, held.asks || slot == 3};
  }
  if (lacks_slot()) try_again_ = now + kTryAgain;
  std::erase_if(tried, [&](const auto* each) { return held_[each->mutex].slot == 0; });
  if (tried.empty()) return;
  await_releases(tried);
  for (const Bells::Wanted* each : tried) {
    each->bell->is_live = !is_in_cluster_;
    hint(each->mutex);  // what happened until now was not heard
  }
}

// A release that looked for waiters before they were there may not be committed yet, and whoever
// asks now would not see it: it is waited for, by a lock on the row.
void BellSource::await_releases(const std::vector<const Bells::Wanted*>& tried) {
  std::string sql;
  for (const Bells::Wanted* each : tried) {
    sql += sql.empty() ? "SELECT COUNT(*) FROM " + endpoint_->quoted_table() + " WHERE mutex IN ("
                       : std::string(",");
    sql += "_utf8mb4 ";
    append_literal(sql, each->mutex);
  }
  try {
    connection_.query(sql + ") LOCK IN SHARE MODE",
                      BootClock::now() + endpoint_->connect_timeout());
  } catch (const Failure& error) {
    if (!error.is_locked()) throw;  // a stranger has it locked: who waits will ask again
  }
}

// Nothing to wait for in the server.
void BellSource::idle(const kit::StopSignal& stop) {
  std::array<pollfd, 3> sources{{{bells_->descriptor(), POLLIN, 0},
                                 {stop.descriptor(), POLLIN, 0},
                                 {mysql_get_socket(connection_.get()), POLLIN, 0}}};
  const auto patience = std::chrono::duration_cast<milliseconds>(kTryAgain).count();
  poll(sources.data(), sources.size(), held_.empty() ? -1 : static_cast<int>(patience));
  if (sources[2].revents != 0 || !connection_.is_usable()) {
    throw Error(Errc::kUnreachable,
                "mysql at " + endpoint_->where() + ": the connection that waits was closed");
  }
}

// Looks whether the rows were written since the last time, and else waits. One statement: a ring
// before it began is not heard, but what it told is seen then; and a ring between two statements of
// one text would be answered by nothing at all. It looks at what is committed (READ COMMITTED):
// whoever was told of more would still find the old owner, and nobody would tell him again. That
// is a view of the data which the server keeps while this sleeps. And it looks whether the server
// has been demoted meanwhile, and whether somebody asks for a place that is here for a watch alone.
std::string BellSource::wait_sql() const {
  const std::string gate = literal(gate_of(*endpoint_)), most = std::to_string(kSleep.count());
  std::string asked;
  for (const auto& [mutex, held] : held_) {
    if (held.slot != 'b' || held.contends) continue;
    asked += "IS_USED_LOCK(" + literal(bell_of(*endpoint_, mutex) + 'c') + "), ";
  }
  std::string sql = "SELECT IF(s.writes = " + writes_ + ", CASE WHEN IS_USED_LOCK(" + gate +
                    ") = CONNECTION_ID() THEN SLEEP(" + most + ") WHEN GET_LOCK(" + gate + ", " +
                    most + ") IS NULL THEN 1 ELSE 0 END, 2), s.writes, " + only_reads_sql() +
                    ", COALESCE(" + asked +
                    "0) FROM (SELECT IFNULL(SUM(version), 0) AS writes FROM " +
                    endpoint_->quoted_table() + " WHERE mutex IN (";
  bool is_first = true;
  for (const auto& [mutex, held] : held_) {
    sql += is_first ? "_utf8mb4 " : ",_utf8mb4 ";
    append_literal(sql, mutex);
    is_first = false;
  }
  return sql + ")) s";
}

void BellSource::wait_in_server(const kit::StopSignal& stop) {
  MYSQL* const handle = connection_.get();
  const std::string sql = wait_sql();
  const LocalTime deadline = BootClock::now() + kSleep + endpoint_->connect_timeout();
  bool is_stopped = false;
  const Leash leash(handle, deadline);
  const auto go_through = [&](int status, auto go_on) {
    while (status != 0 && !is_stopped) {
      is_stopped = !wait_for_ring(status, deadline, stop);
      if (!is_stopped) status = go_on(status);
    }
  };
  int error = 0;
  MYSQL_RES* rows = nullptr;
  go_through(mysql_real_query_start(&error, handle, sql.data(), sql.size()),
             [&](int ready) { return mysql_real_query_cont(&error, handle, ready); });
  if (!is_stopped && error == 0) {
    go_through(mysql_store_result_start(&rows, handle),
               [&](int ready) { return mysql_store_result_cont(&rows, handle, ready); });
  }
  if (is_stopped) return connection_.spoil();
  connection_.check_leash();
  // Whoever is woken gets 1 instead of 0, and from MariaDB an error.
  Result answer(rows, 0, 0, endpoint_->where());
  if (!answer.next()) connection_.fail(mysql_errno(handle), mysql_error(handle));
  was_rung_ = answer.number(0) != 0;
  writes_ = std::to_string(answer.number(1));
  if (answer.number(2) != 0) refuse_reader();
  is_asked_ = answer.number(3) != 0;
}

bool BellSource::wait_for_ring(int status, LocalTime deadline, const kit::StopSignal& stop) {
  std::array<pollfd, 3> sources{
      {{mysql_get_socket(connection_.get()), Connection::events_of(status), 0},
       {stop.descriptor(), POLLIN, 0},
       {bells_->descriptor(), POLLIN, 0}}};
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - BootClock::now());
    const int ready = left.count() <= 0 ? 0
                                        : poll(sources.data(), sources.size(),
                                               static_cast<int>(left.count()) + 1);
    if (ready < 0) continue;
    if (ready == 0) {
      connection_.spoil();
      throw Error(Errc::kUnreachable,
                  "mysql at " + endpoint_->where() + ": the connection that waits is not answered");
    }
    if (sources[1].revents != 0) return false;
    if (sources[0].revents != 0) return true;
    bells_->clear_descriptor();
    interrupt(stop);
  }
}

// Somebody waits for another mutex: the connection has to get up for it. Where there is no other to
// wake it, it does so by itself in a moment.
void BellSource::interrupt(const kit::StopSignal& stop) try {
  Connection other(*endpoint_, stop);
  ring(other, connection_.id(), BootClock::now() + endpoint_->connect_timeout());
} catch (const Error&) {
}

}  // namespace simba::mysql
