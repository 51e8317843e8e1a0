#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "simba/postgres.h"
#include "stores/kit/sql_fixture.h"
#include "testing/servers/postgres_server.h"

// What the tests of this store share: a server, somebody who administers it, and names nobody else
// uses.
namespace simba::postgres {

using namespace kit::fixture;  // NOLINT(google-build-using-namespace): for tests alone

// A connection that speaks SQL. Trouble is std::runtime_error.
//
// Threads: one.
class Admin {
 public:
  explicit Admin(const std::string& url);
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;
  ~Admin();

  // The values of the first row, with '|' in between; empty where there is none.
  std::string operator()(const std::string& sql);

 private:
  pg_conn* connection_;
};

class PostgresTest : public SqlTest<Admin> {
 protected:
  static constexpr const char* kNowMs =
      "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

  static constexpr const char* kRowLocks = "pg_blocking_pids";  // where a locked row is looked up

  PostgresTest() : SqlTest("postgres") {}
  void TearDown() override;

  PostgresOptions options(const std::string& as = {}, const std::string& more = {}) const;
  std::shared_ptr<Store> open(const std::string& as = {}, const std::string& more = {}) const {
    return open_postgres(options(as, more));
  }
  static std::shared_ptr<Store> open_with(const PostgresOptions& options) {
    return open_postgres(options);
  }
  // As another process would: it listens on a connection of its own.
  std::shared_ptr<Store> open_elsewhere(const std::string& as = {}) const;
  // A role that can log in, gone afterwards.
  void make_user(const std::string& how = {}) const {
    admin()("CREATE ROLE " + user + " LOGIN " + how);
  }
  void alter_user(const std::string& how) const { admin()("ALTER ROLE " + user + ' ' + how); }
  static std::string with_password(const std::string& word) { return "PASSWORD '" + word + "'"; }
  static std::string with_connections(int most) {
    return "CONNECTION LIMIT " + std::to_string(most);
  }
  // Everybody is let in but who calls for his password to be looked at.
  bool asks_for_passwords() const { return is_ours(); }
  void need_password() const;
  void make_table() const;
  // A role that may contend.
  void prepare_user(const std::string& how = {}) const;
  std::unique_ptr<Admin> connect_as(const std::string& who) const {
    return std::make_unique<Admin>(options(who).conninfo);
  }
  // Connections of the case's stores for which a condition on pg_stat_activity holds.
  int count_connections(const std::string& condition) const;
  // The processes of the server that serve them.
  std::string backends() const;
  void cut_connections() const;
  bool somebody_waits_for_a_row() const {
    return count_connections("wait_event_type = 'Lock'") > 0;
  }
  // Another text after each write to the table, and each lock of a row.
  std::string writes() const;

 private:
  // Of pg_stat_activity: what the case's stores have open.
  std::string ours() const { return "application_name LIKE '" + table + "%'"; }
};

class PostgresServerTest
    : public OwnSqlServerTest<servers::PostgresServer, servers::PostgresSettings> {
 protected:
  PostgresServerTest() : OwnSqlServerTest(servers::need_postgres) {}

  // Each with a listening connection of its own, as other processes have.
  std::shared_ptr<Store> open() {
    return open_postgres(options(server->url("postgres", "application_name=test-" + next())));
  }
  PostgresOptions options(const std::string& url) const { return with_log(postgres_options(url)); }
  void crash() { server->crash(); }
  void pause() { server->pause_all(); }
  void resume() { server->resume_all(); }
};

}  // namespace simba::postgres

// For the cases of stores/kit.
namespace simba::kit {
using SqlFixture = postgres::PostgresTest;
using SqlServerFixture = postgres::PostgresServerTest;
}  // namespace simba::kit
