#include "stores/postgres/postgres_fixture.h"

#include <libpq-fe.h>

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

void PostgresTest::TearDown() {
  if (!is_prepared()) return;
  admin()("DROP TABLE IF EXISTS " + table);
  if (admin()("SELECT 1 FROM pg_roles WHERE rolname = '" + user + "'").empty()) return;
  admin()("DROP OWNED BY " + user);
  admin()("DROP ROLE " + user);
}

PostgresOptions PostgresTest::options(const std::string& as, const std::string& more) const {
  PostgresOptions made =
      postgres_options(url(as, "application_name=" + table + (more.empty() ? "" : "&" + more)));
  made.log = log.sink();
  return made;
}

std::shared_ptr<Store> PostgresTest::open_elsewhere(const std::string& as) const {
  static std::atomic<int> count{0};
  return open(as, "application_name=" + table + '-' + std::to_string(++count));
}

void PostgresTest::need_password() const {
  admin()("DO $$ BEGIN CREATE ROLE simba_passwords; EXCEPTION WHEN OTHERS THEN END $$");
  admin()("GRANT simba_passwords TO " + user);
}

void PostgresTest::make_table() const { admin()(create_table_sql('"' + table + '"')); }

void PostgresTest::prepare_user(const std::string& how) const {
  make_user(how);
  make_table();
  grant();
}

int PostgresTest::count_connections(const std::string& condition) const {
  return std::stoi(admin()("SELECT count(*) FROM pg_stat_activity WHERE " + ours() + " AND (" +
                           condition + ')'));
}

std::string PostgresTest::backends() const {
  return admin()("SELECT string_agg(pid::text, ', ') FROM pg_stat_activity WHERE " + ours());
}

void PostgresTest::cut_connections() const {
  admin()("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " + ours());
}

std::string PostgresTest::writes() const {
  return admin()(
      "SELECT string_agg(concat_ws(' ', mutex, xmin, xmax, ctid, version), ', ' ORDER BY "
      "mutex) FROM " +
      table);
}

}  // namespace simba::postgres
