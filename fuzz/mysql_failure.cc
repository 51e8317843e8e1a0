// Errors of a MySQL server, or of whoever answers in its place: a number and any text.
#include <string>

#include "fuzz/failure.h"
#include "stores/mysql/failure.h"

using simba::Errc;
using simba::fuzz::require;

namespace {

namespace mysql = simba::mysql;

constexpr unsigned kNoConnection = 2002, kTlsFailed = 2026;

simba::MysqlOptions options() {
  simba::MysqlOptions options;
  options.hosts = {{"db.example", 3306}};
  options.database = "simba_db";
  options.password = "canary";
  return options;
}

void check(const mysql::Failure& failure) {
  simba::fuzz::check(failure, "mysql at db.example:3306/simba_db: ");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mysql::Endpoint endpoint(options());
  simba::fuzz::Input input(data, size);
  // Those that the text has a say in, and any other.
  const unsigned numbers[] = {kNoConnection, kTlsFailed, input.in_range(1000U, 5999U),
                              input.number<unsigned>()};
  const unsigned number = numbers[input.in_range(0, 3)];
  const std::string text = input.rest();

  const mysql::Failure failure = mysql::failure(number, text, endpoint);
  check(failure);
  require(failure.number() == number || number == kTlsFailed, "an error keeps its number");
  const mysql::Failure refused = mysql::connect_failure(number, text, endpoint);
  check(refused);
  if (number == kNoConnection) {
    require(refused.errc() == Errc::kUnreachable, "what is said before TLS is advice alone");
  }
  if (number == kTlsFailed) {
    require(refused.errc() == Errc::kUnreachable || refused.errc() == Errc::kMisconfigured,
            "TLS is not there, or does not prove enough");
  }
  mysql::breaks_connection(number);
  return 0;
}
