#pragma once

#include <string>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/claims.h"
#include "stores/mysql/result.h"
#include "stores/mysql/statements.h"

// What rows of an answer say, read with suspicion. A Row is a Result or a Prepared.
// Errors: kCorrupt; kMisconfigured for names that the table cannot tell apart.
namespace simba::mysql {

inline StoreTime at(std::uint64_t ms) {
  return StoreTime{milliseconds{static_cast<std::int64_t>(ms)}};
}

template <class Row>
std::string in_answer(const Row& row) {
  return "mysql at " + std::string(row.where()) + ": ";
}

template <class Row>
StoreTime time_in(const Row& row, unsigned column) {
  const std::uint64_t ms = row.number(column);
  if (ms <= kit::kMaxToken) return at(ms);
  throw Error(Errc::kCorrupt, in_answer(row) + "a row holds the time " + std::to_string(ms) +
                                  ", which is beyond " + std::to_string(kit::kMaxToken));
}

// A row that does not exist is nobody's. One that the server takes for this mutex and that is
// spelled differently would be waited for for ever.
template <class Row>
Observation read_row(const Row& row, std::string_view mutex) {
  const StoreTime now = time_in(row, Column::kNow);
  if (row.is_null(Column::kMutex)) return {MutexOwner::none(), now};
  const std::string_view found = row.text(Column::kMutex);
  if (found != mutex) {
    throw Error(Errc::kMisconfigured,
                in_answer(row) + "the table takes the mutex '" + std::string(mutex) +
                    "' and its row '" + std::string(found) +
                    "' for the same name, so that both can never be there: use one spelling, or "
                    "give the column mutex a type that compares bytes (VARBINARY(66))");
  }
  const std::uint64_t token = row.number(Column::kToken);
  if (token > kit::kMaxToken) {
    throw Error(Errc::kCorrupt, in_answer(row) + "a row holds the token " + std::to_string(token) +
                                    ", which is beyond " + std::to_string(kit::kMaxToken));
  }
  return {{std::string(row.text(Column::kOwner)), time_in(row, Column::kAcquired),
           time_in(row, Column::kTtl), time_in(row, Column::kTransition), token},
          now};
}

// A lease that a statement without rows tells of: of its beginning, or by its token.
inline Observation granted(const Claim& claim, std::uint64_t now_ms, Token token,
                           std::string_view where) {
  const milliseconds lease = claim.ttl + claim.transition;
  const Token most = kit::kMaxToken - static_cast<Token>(lease.count());
  const bool is_token = token < kit::kMaxToken && (claim.renews() || token > claim.floor);
  if (now_ms == 0 || now_ms > most || !is_token) {
    refuse_answer(where, "tells of a lease at " + std::to_string(now_ms) + " with the token " +
                             std::to_string(token) + ", which cannot be");
  }
  const StoreTime now = at(now_ms);
  return {{std::string(claim.wire_id), now, now + claim.ttl, now + lease, token}, now};
}

// A row with the last token there is can never be taken again: that is no answer to a take.
template <class Row>
Answer read_answer(const Row& row, std::string_view mutex, const Claim* claim,
                   const Shape& shape) try {
  Observation seen = read_row(row, mutex);
  if (claim == nullptr) return seen;
  const Token most = shape.has_token ? kit::kMaxToken : kMostVersion;
  if (!claim->renews() && seen.owner.token >= most) {
    return Error(Errc::kCorrupt,
                 in_answer(row) + "the row of this mutex holds a token at the end of its range");
  }
  if (!claim->renews()) kit::set_time_of_refusal(seen, *claim);
  // Kept for the term, where the row holds no token, or not yet.
  const bool is_kept = seen.owner.token <= kMostVersion;
  if (claim->renews() && is_kept && seen.owner.is_owner(claim->wire_id)) {
    seen.owner.token = claim->token;
  }
  return seen;
} catch (const Error& error) {
  return error;
}

template <class Row>
std::size_t place_in(const Row& row, unsigned column, std::size_t count) {
  const std::uint64_t place = row.number(column);
  if (place >= 1 && place <= count) return place - 1;
  refuse_answer(row.where(),
                "is about claim " + std::to_string(place) + " of " + std::to_string(count));
}

}  // namespace simba::mysql
