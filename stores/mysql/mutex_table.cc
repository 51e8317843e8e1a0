#include "stores/mysql/mutex_table.h"

#include <algorithm>

#include "stores/kit/batches.h"
#include "stores/mysql/answers.h"
#include "stores/mysql/bell.h"
#include "stores/mysql/prepared.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {
namespace {

// Three quarters of what is left: the answer needs time too.
milliseconds limit_of(LocalTime deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - BootClock::now());
  return std::clamp(left * 3 / 4, milliseconds{1}, milliseconds{1'000'000});
}

std::uint64_t count_of(milliseconds length) { return static_cast<std::uint64_t>(length.count()); }

// Arguments of a prepared statement, the limit first where the server knows one.
Prepared& start(Connection& connection, std::size_t which, LocalTime deadline) {
  Prepared& statement = connection.prepared(which, deadline);
  if (!connection.statements().shape.is_mariadb) return statement;
  return statement.number(count_of(limit_of(deadline)));
}

Answer observe_one(Connection& connection, std::string_view mutex, const Claim* claim,
                   LocalTime deadline) {
  Prepared& statement = connection.prepared(Statements::kObserve, deadline);
  statement.text(mutex).run(deadline);
  if (!statement.next()) refuse_answer(connection.endpoint().where(), "has no row");
  return read_answer(statement, mutex, claim, connection.statements().shape);
}

// None: it was not free, or is not there.
std::optional<Observation> take_free(Connection& connection, const Claim& claim,
                                     LocalTime deadline) {
  Prepared& statement = start(connection, Statements::kTakeAgain, deadline);
  statement.number(count_of(claim.ttl)).number(count_of(claim.ttl + claim.transition));
  statement.text(claim.wire_id).text(claim.mutex).text(claim.mutex).number(claim.floor);
  statement.run(deadline);
  if (statement.changed() == 0) return {};
  const Token token = statement.id();
  return granted(claim, token / 1'000, token, statement.where());
}

Answer take_one(Connection& connection, const Claim& claim, Released& released,
                LocalTime deadline) {
  const Statements& statements = connection.statements();
  if (released.remove(hash_of(connection.endpoint(), claim.mutex)) && statements.shape.has_token) {
    if (auto taken = take_free(connection, claim, deadline)) return *taken;
  }
  if (!statements.shape.is_mariadb) {
    Result rows = connection.query(statements.take_one(claim), deadline);
    if (!rows.next()) refuse_answer(connection.endpoint().where(), "has no row");
    return read_answer(rows, claim.mutex, &claim, statements.shape);
  }
  Prepared& statement = start(connection, Statements::kTake, deadline);
  statement.text(claim.mutex).number(count_of(claim.ttl));
  statement.number(count_of(claim.ttl + claim.transition)).text(claim.wire_id);
  statement.number(claim.floor + 1).run(deadline);
  if (!statement.next()) refuse_answer(connection.endpoint().where(), "has no row");
  return read_answer(statement, claim.mutex, &claim, statements.shape);
}

// Not written by this call, though nothing spoke against it: it was locked.
bool was_skipped(const Claim& claim, const Observation& seen, bool is_done) {
  if (is_done) return false;
  const bool is_mine = seen.owner.is_owner(claim.wire_id);
  if (!claim.renews()) return is_mine || seen.is_free();
  return is_mine && seen.owner.token == claim.token && !seen.is_free();
}

Answers contend_many(Connection& connection, std::span<const Claim> claims,
                     LocalTime deadline) try {
  const Statements& statements = connection.statements();
  const milliseconds limit = limit_of(deadline);
  Result rows = connection.query(claims.front().renews() ? statements.renew_many(claims, limit)
                                                         : statements.take_many(claims, limit),
                                 deadline);
  Answers answers(claims.size(), Blocked{});
  while (rows.next()) {
    const std::size_t place = place_in(rows, Column::kPlace, claims.size());
    const Claim& claim = claims[place];
    answers[place] = read_answer(rows, claim.mutex, &claim, statements.shape);
    const auto* seen = std::get_if<Observation>(&answers[place]);
    const bool is_done = !rows.is_null(Column::kDone) && rows.number(Column::kDone) != 0;
    if (seen != nullptr && was_skipped(claim, *seen, is_done)) answers[place] = Blocked{};
  }
  return answers;
} catch (const Failure& error) {
  // Somebody inserts one of them, and does not say which, nor when he is done: each is asked alone.
  if (!error.is_locked() || claims.front().renews()) throw;
  return Answers(claims.size(), Blocked{});
}

Answer renew_one(Connection& connection, const Claim& claim, LocalTime deadline) {
  Prepared& statement = start(connection, Statements::kRenew, deadline);
  statement.number(count_of(claim.ttl)).number(count_of(claim.ttl + claim.transition));
  statement.text(claim.mutex).text(claim.mutex).text(claim.wire_id).number(claim.token);
  statement.run(deadline);
  if (statement.changed() == 0) {
    Answer answer = observe_one(connection, claim.mutex, &claim, deadline);
    const auto* seen = std::get_if<Observation>(&answer);
    if (seen == nullptr || !was_skipped(claim, *seen, false)) return answer;
    // The term runs, and was not renewed: it is a replica that refuses without a word (MySQL). This
    // one hears why.
    return contend_many(connection, {&claim, 1}, deadline).front();
  }
  return granted(claim, statement.id(), claim.token, statement.where());
}

Answer contend_one(Connection& connection, const Claim& claim, Released& released,
                   LocalTime deadline) try {
  return claim.renews() ? renew_one(connection, claim, deadline)
                        : take_one(connection, claim, released, deadline);
} catch (const Failure& error) {
  if (!error.is_locked()) throw;
  return Blocked{};
}

void check_id(const Shape& shape, const Claim& claim, const std::string& where) {
  if (claim.wire_id.size() <= shape.owner_length) return;
  throw Error(Errc::kMisconfigured,
              "mysql at " + where + ": the wire id has " + std::to_string(claim.wire_id.size()) +
                  " bytes; this table holds ids of " + std::to_string(shape.owner_length) +
                  ": bring it up to date (docs/mysql.md), or write max_id_length=" +
                  std::to_string(shape.owner_length) + " in the URL and use shorter contender ids");
}

Freed freed_of(std::string_view mutex, std::uint64_t waiters) {
  return {mutex, {waiters & 0xffffffff, waiters >> 32}};
}

std::optional<Freed> release_one(Connection& connection, const Claim& claim, LocalTime deadline) {
  const std::string bell = bell_of(connection.endpoint(), claim.mutex);
  Prepared& statement = start(connection, Statements::kRelease, deadline);
  statement.text(bell + 'a').text(bell + 'b');
  statement.text(claim.mutex).text(claim.mutex).text(claim.wire_id);
  statement.number(claim.token).number(claim.token).run(deadline);
  if (statement.changed() == 0) return {};
  return freed_of(claim.mutex, statement.id());
}

}  // namespace

Answers contend(Connection& connection, std::span<const Claim> claims, Released& released,
                LocalTime deadline) {
  const Shape& shape = connection.statements().shape;
  return kit::send_checked(
      claims, [&](const Claim& claim) { check_id(shape, claim, connection.endpoint().where()); },
      [&](std::span<const Claim> good) {
        if (good.size() > 1) return contend_many(connection, good, deadline);
        Answers answers;
        answers.push_back(contend_one(connection, good.front(), released, deadline));
        return answers;
      });
}

Answers release(Connection& connection, std::span<const Claim> claims, LocalTime deadline,
                std::vector<Freed>& freed) {
  if (claims.size() == 1) {
    std::optional<Freed> one;
    try {
      one = release_one(connection, claims.front(), deadline);
    } catch (const Failure& error) {
      if (!error.is_locked()) throw;
      return Answers(1, Blocked{});
    }
    if (one) freed.push_back(*one);
    // A replica of MySQL refuses this one without a word, and the one below with a reason.
    if (one || connection.statements().shape.is_mariadb) return Answers(1, Observation{});
  }
  std::vector<std::string> bells;
  for (const Claim& claim : claims) bells.push_back(bell_of(connection.endpoint(), claim.mutex));
  Result rows = connection.query(
      connection.statements().release_many(claims, bells, limit_of(deadline)), deadline);
  Answers answers(claims.size(), Blocked{});
  while (rows.next()) {
    const std::size_t place = place_in(rows, 0, claims.size());
    const Claim& claim = claims[place];
    if (!rows.is_null(1) && rows.text(1) == claim.wire_id) continue;
    answers[place] = Observation{};
    freed.push_back({claim.mutex, {rows.number(2), rows.number(3)}});
  }
  return answers;
}

std::optional<Freed> evict(Connection& connection, const Claim& term, Eviction how,
                           LocalTime deadline) {
  const std::string bell = bell_of(connection.endpoint(), term.mutex);
  const Result done = connection.query(
      connection.statements().evict(term, how, bell, limit_of(deadline)), deadline);
  if (done.changed() == 0) return {};
  return freed_of(term.mutex, done.id());
}

Answers observe(Connection& connection, std::span<const std::string_view> mutexes,
                LocalTime deadline) {
  if (mutexes.size() == 1) {
    return Answers(1, observe_one(connection, mutexes.front(), nullptr, deadline));
  }
  const Statements& statements = connection.statements();
  Result rows = connection.query(statements.observe_many(mutexes), deadline);
  const Error missing(Errc::kCorrupt, "mysql at " + connection.endpoint().where() +
                                          ": the server gave no answer about this mutex");
  Answers answers(mutexes.size(), missing);
  while (rows.next()) {
    const std::size_t place = place_in(rows, Column::kPlace, mutexes.size());
    answers[place] = read_answer(rows, mutexes[place], nullptr, statements.shape);
  }
  return answers;
}

std::vector<Listed> list(Connection& connection, std::string_view prefix, std::string_view after,
                         std::size_t limit, LocalTime deadline) {
  const std::size_t most = std::min<std::size_t>(limit, 1U << 31);
  constexpr std::size_t kMostOfARow = 1'024;
  Result rows = connection.query(connection.statements().list(prefix, after, most), deadline,
                                 Leash::kUsual + most * kMostOfARow);
  std::vector<Listed> found;
  while (rows.next()) {
    const std::string_view mutex = rows.text(Column::kMutex);
    found.push_back({std::string(mutex), read_row(rows, mutex)});
  }
  return found;
}

}  // namespace simba::mysql
