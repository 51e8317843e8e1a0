#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "stores/kit/fixture.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::kit::fixture {

// A table and a user of its own on a server that speaks SQL (servers::TestServer). `Admin` is a
// connection to it: made from a URL, called with SQL, it returns the values of the first row with
// '|' in between, empty where there is none. Trouble is std::runtime_error.
template <class Admin>
class SqlTest : public ::testing::Test {
 protected:
  explicit SqlTest(std::string_view kind) : kind_(kind) {}

  void SetUp() override {
    try {
      server_ = std::make_unique<servers::TestServer>(kind_);
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    admin_ = std::make_unique<Admin>(server_->url());
    const std::string number = std::to_string(std::random_device{}());
    table = "simba_test_" + number;
    user = "u" + number;
  }

  // A URL for a user ("" is the one that may do everything), with the case's own table.
  std::string url(const std::string& as = {}, const std::string& more = {}) const {
    std::string out = server_->url("table=" + table + (more.empty() ? "" : "&" + more));
    if (as.empty()) return out;
    const std::size_t from = out.find("//") + 2, at = out.find('@');
    return out.replace(from, at - from, as);
  }
  Admin& admin() const { return *admin_; }
  bool is_prepared() const { return admin_ != nullptr; }  // not skipped
  bool is_ours() const { return server_->is_shared(); }   // the server

  void grant(const std::string& rights = "SELECT, INSERT, UPDATE") const {
    admin()("GRANT " + rights + " ON " + table + " TO " + user);
  }
  std::string row(const std::string& mutex, const std::string& columns) const {
    return admin()("SELECT " + columns + " FROM " + table + " WHERE mutex = '" + mutex + "'");
  }
  bool holds(const std::string& mutex, const std::string& condition) const {
    return row(mutex, "CASE WHEN " + condition + " THEN 'yes' END") == "yes";
  }
  // Holds the lock of a row, from now on, until it goes.
  std::unique_ptr<Admin> lock_row(const std::string& mutex) const {
    auto stranger = std::make_unique<Admin>(server_->url());
    (*stranger)("BEGIN");
    (*stranger)("SELECT 1 FROM " + table + " WHERE mutex = '" + mutex + "' FOR UPDATE");
    return stranger;
  }
  // Is about to insert a row, from now on, until it goes.
  std::unique_ptr<Admin> begin_insert(const std::string& mutex) const {
    auto stranger = std::make_unique<Admin>(server_->url());
    (*stranger)("BEGIN");
    (*stranger)("INSERT INTO " + table +
                " (mutex, acquired_at, ttl_at, transition_at, owner_id, version) VALUES ('" +
                mutex + "', 0, 0, 0, '', 0)");
    return stranger;
  }

  std::string table, user;
  Lines log;

 private:
  const std::string kind_;
  std::unique_ptr<servers::TestServer> server_;
  std::unique_ptr<Admin> admin_;
};

// A server of the case's own, which may be killed, stopped and paused. `need` throws Unavailable
// where this machine has none.
template <class Server, class Settings>
class OwnSqlServerTest : public ::testing::Test {
 protected:
  explicit OwnSqlServerTest(void (*need)()) : need_(need) {}

  void SetUp() override {
    try {
      need_();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
  void start(const Settings& settings = {}) {
    server = std::make_unique<Server>(settings);
    server->start();
  }
  template <class Options>
  Options with_log(Options options) const {
    options.log = log.sink();
    return options;
  }
  // Another number each time: stores of one process share connections where all else is the same.
  std::string next() { return std::to_string(++count_); }

  std::unique_ptr<Server> server;
  Lines log;

 private:
  void (*const need_)();
  int count_ = 10;
};

}  // namespace simba::kit::fixture
