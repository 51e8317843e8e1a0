// Rows of a PostgreSQL server, as libpq holds them: any number of columns, each of any length, or
// null.
#include <libpq-fe.h>

#include <string>
#include <vector>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/postgres/answers.h"

using simba::fuzz::accepts;

namespace {

// A value of eight bytes, as a bigint has, more often than not.
std::string value(simba::fuzz::Input& input) {
  return input.flip() ? input.bytes(8) : input.text(40);
}

simba::postgres::Result make_result(simba::fuzz::Input& input) {
  simba::postgres::Result result(PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK));
  const int columns = input.in_range(0, 9);
  std::vector<PGresAttDesc> attributes(static_cast<std::size_t>(columns));
  std::string name = "x";
  for (PGresAttDesc& each : attributes) each = {name.data(), 0, 0, 1, 25, -1, -1};
  PQsetResultAttrs(result.get(), columns, attributes.data());
  const int rows = input.in_range(0, 3);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const bool is_null = input.in_range(0, 9) == 0;
      std::string text = column == 0 ? simba::fuzz::id(input) : value(input);
      PQsetvalue(result.get(), row, column, is_null ? nullptr : text.data(),
                 is_null ? -1 : static_cast<int>(text.size()));
    }
  }
  return result;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace postgres = simba::postgres;
  simba::fuzz::Input input(data, size);
  const postgres::Result result = make_result(input);
  for (int row = 0; row <= result.rows(); ++row) {  // one too many
    simba::fuzz::check(postgres::read_answer(result, row, postgres::Asked::kTake));
    simba::fuzz::check(postgres::read_answer(result, row, postgres::Asked::kOther));
    accepts<simba::Error>([&] { simba::fuzz::check(postgres::read_row(result, row)); });
    accepts<simba::Error>([&] {
      const std::size_t place = postgres::place_of(result, row, postgres::kPlace, 3);
      simba::fuzz::require(place < 3, "a place is one of those asked about");
    });
  }
  return 0;
}
