// Errors of a PostgreSQL server, or of whoever answers in its place: five characters, or what
// stands for them, and any text; and of an attempt to connect a text alone.
#include <string>

#include "fuzz/failure.h"
#include "stores/postgres/failure.h"

using simba::Errc;
using simba::fuzz::require;

namespace {

namespace postgres = simba::postgres;

const std::string kWhere = "db.example:5432/simba_db", kTable = "\"simba_mutex\"";

bool is_state(std::string_view text) {
  return text.size() == 5 &&
         text.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == text.npos;
}

void check(const simba::Error& error) { simba::fuzz::check(error, "postgres at " + kWhere + ": "); }

void check_attempt(const std::string& text) {
  const simba::Error error = postgres::connect_failure(text, kWhere);
  check(error);
  if (text.find(":  ") != text.npos) return;  // else the server did not speak
  require(error.errc() == Errc::kUnreachable || error.errc() == Errc::kMisconfigured,
          "who did not speak was not reached, or did not prove enough");
}

// As libpq puts it together: what the state says is what it says in an answer.
void check_told(const std::string& state, const std::string& text, Errc code) {
  const simba::Error told =
      postgres::connect_failure("connection failed: FATAL:  " + state + ": " + text, kWhere);
  check(told);
  if (is_state(state)) require(told.errc() == code, "a state means the same when connecting");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const std::string state = input.flip() ? input.bytes(5) : input.text(40), text = input.rest();
  const postgres::Failure failure = postgres::server_failure(state, text, kWhere, kTable);
  check(failure);
  require(failure.is(state), "an error keeps its state");
  if (state.empty()) require(postgres::breaks_connection(state), "nobody answered");
  check_told(state, text, failure.errc());
  check_attempt(text);
  return 0;
}
