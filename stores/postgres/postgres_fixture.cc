#include "stores/postgres/postgres_fixture.h"

#include <libpq-fe.h>

#include <random>
#include <stdexcept>

#include "stores/postgres/schema.h"

namespace simba::postgres {

Admin::Admin(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (PQstatus(connection_) == CONNECTION_OK) {
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    return;
  }
  const std::string why = PQerrorMessage(connection_);
  PQfinish(connection_);
  throw std::runtime_error(why);
}

Admin::~Admin() { PQfinish(connection_); }

std::string Admin::operator()(const std::string& sql) {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_, sql.c_str()),
                                                              PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection_));
  }
  std::string values;
  for (int i = 0; PQntuples(result.get()) > 0 && i < PQnfields(result.get()); ++i) {
    values += (i > 0 ? "|" : "") + std::string(PQgetvalue(result.get(), 0, i));
  }
  return values;
}

void PostgresTest::SetUp() {
  try {
    server_ = std::make_unique<servers::TestServer>("postgres");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  admin_ = std::make_unique<Admin>(server_->url());
  const std::string number = std::to_string(std::random_device{}());
  table = "simba_test_" + number;
  role = "simba_role_" + number;
}

void PostgresTest::TearDown() {
  if (!admin_) return;
  admin()("DROP TABLE IF EXISTS " + table);
  if (admin()("SELECT 1 FROM pg_roles WHERE rolname = '" + role + "'").empty()) return;
  admin()("DROP OWNED BY " + role);
  admin()("DROP ROLE " + role);
}

std::string PostgresTest::url(const std::string& user, const std::string& more) const {
  std::string out = server_->url("table=" + table);
  if (user != "postgres") {
    const std::size_t from = out.find("//") + 2, at = out.find('@');
    out.replace(from, at - from, user);
  }
  return out + "&application_name=" + table + (more.empty() ? "" : "&" + more);
}

PostgresOptions PostgresTest::options(const std::string& user, const std::string& more) const {
  PostgresOptions made = postgres_options(url(user, more));
  made.log = const_cast<Lines&>(log).sink();  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return made;
}

void PostgresTest::make_role(const std::string& options) const {
  (*admin_)("CREATE ROLE " + role + " LOGIN " + options);
}

void PostgresTest::make_table() const { (*admin_)(create_table_sql('"' + table + '"')); }

std::string PostgresTest::count_backends(const std::string& condition) const {
  return (*admin_)("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + table +
                   "' AND (" + condition + ")");
}

}  // namespace simba::postgres
