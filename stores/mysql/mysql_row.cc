#include "simba/mysql.h"
#include "stores/mysql/answers.h"
#include "stores/mysql/schema.h"

namespace simba::inline v0 {
namespace {

std::uint32_t version_in(const mysql::Result& row) {
  constexpr unsigned kVersion = mysql::Column::kNow + 1;
  const std::uint64_t version = row.number(kVersion);
  if (version <= ~std::uint32_t{0}) return static_cast<std::uint32_t>(version);
  mysql::refuse_answer(row.where(), "holds the version " + std::to_string(version) +
                                        ", which is beyond what its column should hold");
}

}  // namespace

MysqlRow read_mysql_row(const MysqlOptions& options, std::string_view mutex) {
  mysql::Endpoint endpoint(options);
  const kit::StopSignal never;
  mysql::Connection connection(endpoint, never);
  const LocalTime deadline = BootClock::now() + endpoint.connect_timeout();
  mysql::prepare_to_look(connection, deadline);
  mysql::Result row = connection.query(connection.statements().row(mutex), deadline);
  if (!row.next()) mysql::refuse_answer(endpoint.where(), "has no row");
  const Observation seen = mysql::read_row(row, mutex);
  MysqlRow found{seen.owner, {}, seen.now};
  if (!row.is_null(mysql::Column::kMutex)) found.version = version_in(row);
  return found;
}

}  // namespace simba::inline v0
