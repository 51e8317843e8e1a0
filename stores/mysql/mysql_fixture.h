#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "simba/mysql.h"
#include "stores/kit/sql_fixture.h"
#include "testing/servers/mariadb.h"

// What the tests of this store share: a server, somebody who administers it, and names nobody else
// uses.
namespace simba::mysql {

using namespace kit::fixture;  // NOLINT(google-build-using-namespace): for tests alone

// A connection that speaks SQL. Trouble is std::runtime_error.
//
// Threads: one.
class Admin {
 public:
  explicit Admin(const MysqlOptions& options);
  explicit Admin(const std::string& url) : Admin(mysql_options(url)) {}
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;
  ~Admin();

  // The values of the first row, with '|' in between; empty where there is none.
  std::string operator()(const std::string& sql);

 private:
  st_mysql* connection_;
};

// A table of JVM Simba as its script makes it, up to 3.2.
std::string jvm_table_sql(const std::string& table);

class MysqlTest : public SqlTest<Admin> {
 protected:
  static constexpr const char* kNowMs = "FLOOR(UNIX_TIMESTAMP(SYSDATE(3)) * 1000)";

  static constexpr const char* kRowLocks = "INNODB_TRX";  // where a locked row is looked up

  MysqlTest() : SqlTest("mariadb") {}
  void TearDown() override;

  MysqlOptions options(const std::string& as = {}, const std::string& more = {}) const;
  std::shared_ptr<Store> open(const std::string& as = {}, const std::string& more = {}) const {
    return open_mysql(options(as, more));
  }
  static std::shared_ptr<Store> open_with(const MysqlOptions& options) {
    return open_mysql(options);
  }
  // As another process would: it waits on a connection of its own.
  std::shared_ptr<Store> open_elsewhere(const std::string& as = {}) const;
  // A user that can log in, gone afterwards.
  void make_user(const std::string& how = {}) const { admin()("CREATE USER " + user + ' ' + how); }
  void alter_user(const std::string& how) const { admin()("ALTER USER " + user + ' ' + how); }
  static std::string with_password(const std::string& word) {
    return "IDENTIFIED BY '" + word + "'";
  }
  static std::string with_connections(int most) {
    return "WITH MAX_USER_CONNECTIONS " + std::to_string(most);
  }
  static bool asks_for_passwords() { return true; }
  static void need_password() {}  // who has one needs it
  void make_table() const;
  // A user who may contend.
  void prepare_user(const std::string& how = {}) const;
  std::unique_ptr<Admin> connect_as(const std::string& who) const {
    return std::make_unique<Admin>(options(who));
  }
  bool is_mariadb() const { return admin()("SELECT VERSION() LIKE '%MariaDB%'") == "1"; }
  // Connections of `user` for which a condition on the process list holds.
  int count_connections(const std::string& condition) const;
  void cut_connections() const;
  bool somebody_waits_for_a_row() const;
  // Another text after each write to the table.
  std::string writes() const;
};

class MysqlServerTest : public OwnSqlServerTest<servers::MariadbServer, servers::MariadbSettings> {
 protected:
  MysqlServerTest() : OwnSqlServerTest(servers::need_mariadb) {}

  // Each waits on a connection of its own, as other processes do.
  std::shared_ptr<Store> open(const std::string& user = "admin", const std::string& more = {}) {
    const std::string apart = "connect_timeout=" + next();
    return open_mysql(options(server->url(user, apart + (more.empty() ? "" : "&" + more))));
  }
  MysqlOptions options(const std::string& url) const { return with_log(mysql_options(url)); }
  static bool is_mysql() { return servers::tests_mysql(); }
  void crash() { server->kill(); }
  void pause() { server->pause(); }
  void resume() { server->resume(); }
};

}  // namespace simba::mysql

// For the cases of stores/kit.
namespace simba::kit {
using SqlFixture = mysql::MysqlTest;
using SqlServerFixture = mysql::MysqlServerTest;
}  // namespace simba::kit
