#pragma once

#include <cstddef>

#include "simba/store.h"
#include "stores/postgres/result.h"

// What rows of an answer say, read with suspicion. Errors: kCorrupt.
namespace simba::postgres {

inline constexpr int kPlace = 6;  // the column

// A row that does not exist is nobody's.
Observation read_row(const Result& result, int row);
enum class Asked { kTake, kOther };
// What is wrong with one row is its answer.
Answer read_answer(const Result& result, int row, Asked asked);
// Which of `count` claims the row is about, from 0.
std::size_t place_of(const Result& result, int row, int column, std::size_t count);

}  // namespace simba::postgres
