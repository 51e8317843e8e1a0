#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "simba/postgres.h"
#include "stores/kit/fixture.h"
#include "testing/servers/postgres_server.h"
#include "testing/servers/shared.h"

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

// A table and a role of its own on the server of SIMBA_TEST_POSTGRES_URL, else on one that all test
// programs share.
class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A URL for a user, with the case's own table.
  std::string url(const std::string& user = "postgres", const std::string& more = {}) const;
  PostgresOptions options(const std::string& user = "postgres", const std::string& more = {}) const;
  std::shared_ptr<Store> open(const std::string& user = "postgres",
                              const std::string& more = {}) const {
    return open_postgres(options(user, more));
  }
  // A role that can log in, may use the case's table if it exists, and is gone afterwards.
  void make_role(const std::string& options = {}) const;
  void make_table() const;
  Admin& admin() { return *admin_; }
  bool is_ours() const { return server_->is_shared(); }  // the server
  std::string count_backends(const std::string& condition) const;

  std::string table, role;
  Lines log;

 private:
  std::unique_ptr<servers::TestServer> server_;
  std::unique_ptr<Admin> admin_;
};

}  // namespace simba::postgres
