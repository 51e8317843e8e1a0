#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "simba/postgres.h"
#include "testing/servers/postgres_server.h"
#include "testing/servers/shared.h"

// What the tests of this store share: a server, somebody who administers it, and names nobody else
// uses.
namespace simba::postgres {

using namespace std::chrono_literals;

inline LocalTime soon() { return BootClock::now() + 10s; }
bool eventually(const std::function<bool()>& done, milliseconds patience = 15s);
// The error a call throws, as "code: text"; "none".
std::string error_of(const std::function<void()>& call);

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

// The lines of a log.
//
// Threads: any.
class Lines {
 public:
  LogSink sink();
  std::vector<std::string> all() const;
  std::size_t count(const std::string& part) const;

 private:
  struct Kept {
    std::mutex guard;
    std::vector<std::string> lines;  // guarded by guard
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

// The answer to one claim.
Answer contend(Store& store, const Claim& claim, LocalTime deadline = soon());
Observation observed(const Answer& answer);
Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor = 0);
Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  milliseconds ttl = 10s, milliseconds transition = 6s);
void release(Store& store, std::string_view mutex, std::string_view wire_id, Token token = 0);
Observation observe(Store& store, std::string_view mutex);

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
  bool is_ours() const { return shared_ != nullptr; }  // the server
  std::string count_backends(const std::string& condition) const;

  std::string table, role;
  Lines log;

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string server_;
  std::unique_ptr<Admin> admin_;
};

// A contender on a mutex with a short lease, and how often it got and lost it.
class Contender {
 public:
  Contender(const Client& client, const std::string& mutex, const ContendOptions& options);
  ~Contender();
  bool is_owner() const { return service_->is_owner(); }
  bool is_in_ttl() const { return service_->is_in_ttl(); }
  Token token() const { return service_->term().token(); }
  int acquired() const { return counts_->acquired; }
  int released() const { return counts_->released; }
  void stop() { service_->stop(); }

 private:
  struct Counts {
    std::atomic<int> acquired{0}, released{0};
  };
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::unique_ptr<MutexContendService> service_;
};

ContendOptions lease(milliseconds ttl, milliseconds transition);
ContendOptions short_lease();  // 2 s and 1 s

}  // namespace simba::postgres
