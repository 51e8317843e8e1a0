#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "simba/mysql.h"
#include "stores/kit/fixture.h"
#include "testing/servers/mariadb.h"
#include "testing/servers/shared.h"

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

// A table and a user of its own on the server of SIMBA_TEST_MYSQL_URL, else on one that all test
// programs share.
class MysqlTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A URL for a user ("" is the one that may do everything), with the case's own table.
  std::string url(const std::string& as = {}, const std::string& more = {}) const;
  MysqlOptions options(const std::string& as = {}, const std::string& more = {}) const;
  std::shared_ptr<Store> open(const std::string& as = {}, const std::string& more = {}) const {
    return open_mysql(options(as, more));
  }
  // As another process would: it waits on a connection of its own.
  std::shared_ptr<Store> open_elsewhere(const std::string& as = {}) const;
  // A user that can log in, gone afterwards.
  void make_user(const std::string& how = {}) const;
  void grant(const std::string& rights = "SELECT, INSERT, UPDATE") const;
  void make_table() const;
  Admin& admin() { return *admin_; }
  std::string row(const std::string& mutex, const std::string& columns);
  // Holds the lock of a row, from now on, until it goes.
  std::unique_ptr<Admin> lock_row(const std::string& mutex) const;
  // Connections of `user` for which a condition on the process list holds.
  int count_connections(const std::string& condition) const;

  std::string table, user;
  Lines log;

 private:
  std::unique_ptr<servers::TestServer> server_;
  std::unique_ptr<Admin> admin_;
};

}  // namespace simba::mysql
