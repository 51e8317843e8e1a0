#include "stores/postgres/answers.h"

#include <string>

#include "stores/kit/claims.h"

namespace simba::postgres {
namespace {

StoreTime at(std::int64_t ms) { return StoreTime{milliseconds{ms}}; }

}  // namespace

Observation read_row(const Result& result, int row) {
  const StoreTime now = at(result.number(row, 5));
  if (result.is_null(row, 0)) return {MutexOwner::none(), now};
  const std::int64_t token = result.number(row, 4);
  if (token < 0) {
    throw result.corrupt("a row of the table holds the token " + std::to_string(token));
  }
  return {{std::string(result.text(row, 0)), at(result.number(row, 1)), at(result.number(row, 2)),
           at(result.number(row, 3)), static_cast<Token>(token)},
          now};
}

// A row with the last token there is can never be taken again: that is no answer to a take.
Answer read_answer(const Result& result, int row, Asked asked) try {
  Observation seen = read_row(result, row);
  if (asked == Asked::kTake && seen.owner.token >= kit::kMaxToken) {
    return result.corrupt("the row of this mutex holds a token at the end of its range");
  }
  return seen;
} catch (const Error& error) {
  return error;
}

std::size_t place_of(const Result& result, int row, int column, std::size_t count) {
  const std::int64_t place = result.number(row, column);
  if (place < 1 || static_cast<std::uint64_t>(place) > count) {
    throw result.corrupt("an answer to claim " + std::to_string(place) + " of " +
                         std::to_string(count));
  }
  return static_cast<std::size_t>(place) - 1;
}

}  // namespace simba::postgres
