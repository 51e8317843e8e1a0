#include "stores/postgres/mutex_table.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "stores/kit/claims.h"
#include "stores/postgres/answers.h"
#include "stores/postgres/statements.h"

namespace simba::postgres {
namespace {

// Three quarters of what is left: the answer needs time too. Of a batch a quarter: it skips rows
// that are locked and waits only for those that somebody else is about to insert, at the expense of
// its other claims. In milliseconds, as text.
struct LockLimit {
  explicit LockLimit(LocalTime deadline, int quarters = 3) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - BootClock::now()).count();
    const auto limit = std::clamp<milliseconds::rep>(left * quarters / 4, 1, 1'000'000'000);
    size = static_cast<std::size_t>(std::to_chars(digits.data(), digits.data() + 16, limit).ptr -
                                    digits.data());
  }
  std::string_view text() const { return {digits.data(), size}; }
  std::array<char, 16> digits{};
  std::size_t size;
};

std::int64_t lease_of(const Claim& claim) { return (claim.ttl + claim.transition).count(); }

// What a new term's token is at least; or the token of the term to renew.
std::int64_t token_of(const Claim& claim) {
  return static_cast<std::int64_t>(claim.renews() ? claim.token : claim.floor + 1);
}

// The columns of a batch.
struct Columns {
  explicit Columns(std::span<const Claim> claims) {
    for (const Claim& claim : claims) {
      mutexes.push_back(claim.mutex);
      owners.push_back(claim.wire_id);
      ttls.push_back(claim.ttl.count());
      leases.push_back(lease_of(claim));
      tokens.push_back(token_of(claim));
    }
  }
  std::vector<std::string_view> mutexes, owners;
  std::vector<std::int64_t> ttls, leases, tokens;
};

}  // namespace

MutexTable::MutexTable(const Endpoint& endpoint) : statements_(make_statements(endpoint)) {}

Answers MutexTable::contend(Connection& connection, std::span<const Claim> claims,
                            LocalTime deadline) const {
  if (claims.size() > 1) return contend_many(connection, claims, deadline);
  Answers answers;
  answers.push_back(contend_one(connection, claims.front(), deadline));
  return answers;
}

Answer MutexTable::contend_one(Connection& connection, const Claim& claim, LocalTime deadline) const
    try {
  Result result = ask_one(connection, claim, deadline);
  // Somebody was faster between the look and the lock: now the look shows who.
  if (result.rows() == 0) result = ask_one(connection, claim, deadline);
  if (result.rows() == 0) return Blocked{};
  return read_answer(result, 0, claim.renews() ? Asked::kOther : Asked::kTake);
} catch (const Failure& error) {
  if (!error.is(SqlState::kLocked)) throw;
  return Blocked{};
}

Result MutexTable::ask_one(Connection& connection, const Claim& claim, LocalTime deadline) const {
  const LockLimit limit(deadline);
  Parameters parameters;
  if (!claim.renews()) {
    parameters.text(limit.text()).text(claim.mutex).text(claim.wire_id).number(claim.ttl.count());
    parameters.number(lease_of(claim)).number(token_of(claim));
    return connection.run(statements_[kTakeOne], parameters, deadline);
  }
  const Columns columns({&claim, 1});
  parameters.text(limit.text()).texts(columns.mutexes).texts(columns.owners);
  parameters.numbers(columns.ttls).numbers(columns.leases).numbers(columns.tokens);
  return connection.run(statements_[kRenewOne], parameters, deadline);
}

Answers MutexTable::contend_many(Connection& connection, std::span<const Claim> claims,
                                 LocalTime deadline) const try {
  const bool takes = !claims.front().renews();
  const LockLimit limit(deadline, 1);
  const Columns columns(claims);
  Parameters parameters;
  parameters.text(limit.text()).texts(columns.mutexes).texts(columns.owners);
  parameters.numbers(columns.ttls).numbers(columns.leases).numbers(columns.tokens);
  const Result result =
      connection.run(statements_[takes ? kTakeMany : kRenewMany], parameters, deadline);
  Answers answers(claims.size(), Blocked{});
  for (int row = 0; row < result.rows(); ++row) {
    answers[place_of(result, row, kPlace, claims.size())] =
        read_answer(result, row, takes ? Asked::kTake : Asked::kOther);
  }
  return answers;
} catch (const Failure& error) {
  // Somebody inserts one of them, and does not say which, nor when he is done: each is asked alone.
  if (!error.is(SqlState::kLocked)) throw;
  return Answers(claims.size(), Blocked{});
}

Answers MutexTable::release(Connection& connection, std::span<const Claim> claims,
                            LocalTime deadline, std::vector<std::string_view>& freed) const {
  const LockLimit limit(deadline);
  Parameters parameters;
  if (claims.size() == 1) {
    const Claim& claim = claims.front();
    parameters.text(limit.text()).text(claim.mutex).text(claim.wire_id);
    parameters.number(static_cast<std::int64_t>(claim.token));
    try {
      const Result result = connection.run(statements_[kReleaseOne], parameters, deadline);
      if (result.rows() > 0) freed.push_back(claim.mutex);
    } catch (const Failure& error) {
      if (!error.is(SqlState::kLocked)) throw;
      return Answers(1, Blocked{});
    }
    return Answers(1, Observation{});
  }
  const Columns columns(claims);
  std::vector<std::int64_t> tokens;
  for (const Claim& claim : claims) tokens.push_back(static_cast<std::int64_t>(claim.token));
  parameters.text(limit.text()).texts(columns.mutexes).texts(columns.owners).numbers(tokens);
  const Result result = connection.run(statements_[kReleaseMany], parameters, deadline);
  Answers answers(claims.size(), Observation{});
  for (int row = 0; row < result.rows(); ++row) {
    const std::size_t place = place_of(result, row, 0, claims.size());
    const bool is_free = result.text(row, 1) == std::string_view("\1", 1);
    if (is_free) freed.push_back(claims[place].mutex);
    if (!is_free) answers[place] = Blocked{};
  }
  return answers;
}

bool MutexTable::evict(Connection& connection, const Claim& term, Eviction how,
                       LocalTime deadline) const {
  const LockLimit limit(deadline);
  Parameters parameters;
  parameters.text(limit.text()).text(term.mutex).text(term.wire_id);
  parameters.number(static_cast<std::int64_t>(term.token));
  const Which which = how == Eviction::kFreeNow ? kReleaseOne : kEvict;
  return connection.run(statements_[which], parameters, deadline).rows() > 0;
}

Answers MutexTable::observe(Connection& connection, std::span<const std::string_view> mutexes,
                            LocalTime deadline) const {
  Parameters parameters;
  parameters.texts(mutexes);
  const Result result = connection.run(statements_[kObserve], parameters, deadline);
  Answers answers(mutexes.size(), result.corrupt("the server gave no answer about this mutex"));
  for (int row = 0; row < result.rows(); ++row) {
    answers[place_of(result, row, kPlace, mutexes.size())] =
        read_answer(result, row, Asked::kOther);
  }
  return answers;
}

std::vector<Listed> MutexTable::list(Connection& connection, std::string_view prefix,
                                     std::string_view after, std::size_t limit,
                                     LocalTime deadline) const {
  // Above every name with this prefix: the last character of Unicode, more often than any has room.
  std::string end(prefix);
  for (int i = 0; i < 17; ++i) end += "\xf4\x8f\xbf\xbf";
  const std::string first = kit::first_of_page(prefix, after);
  Parameters parameters;
  parameters.text(first).text(end).text(prefix);
  parameters.number(static_cast<std::int64_t>(std::min<std::size_t>(limit, 1U << 31)));
  const Result result = connection.run(statements_[kList], parameters, deadline);
  std::vector<Listed> found;
  for (int row = 0; row < result.rows(); ++row) {
    found.push_back({std::string(result.text(row, kPlace)), read_row(result, row)});
  }
  return found;
}

}  // namespace simba::postgres
