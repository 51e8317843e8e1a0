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
#include "simba/mongodb.h"
#include "testing/servers/mongodb.h"
#include "testing/servers/shared.h"

// What the tests of this store share: a server, somebody who administers it, and a collection
// nobody else uses.
namespace simba::mongodb {

using namespace std::chrono_literals;

inline LocalTime soon() { return BootClock::now() + 10s; }
bool eventually(const std::function<bool()>& done, milliseconds patience = 20s);
// The error a call throws, as "code: text"; "none".
std::string error_of(const std::function<void()>& call);

// The lines of a log.
//
// Threads: any.
class Lines {
 public:
  LogSink sink() const;
  std::vector<std::string> all() const;
  std::size_t count(const std::string& part) const;

 private:
  struct Kept {
    std::mutex guard;
    std::vector<std::string> lines;  // guarded by guard
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

Answer contend(Store& store, const Claim& claim, LocalTime deadline = soon());
Observation observed(const Answer& answer);
Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor = 0,
                 LocalTime deadline = soon());
Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  LocalTime deadline = soon());
void release(Store& store, std::string_view mutex, std::string_view wire_id, Token token = 0);
Observation observe(Store& store, std::string_view mutex);
// Until it answers: while a new primary is looked for, for example.
Observation insist(const std::function<Observation()>& call);

// A collection of its own on the server of SIMBA_TEST_MONGODB_URL, else on a replica set of one
// that all test programs share.
class MongodbTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  const std::string& server() const { return server_; }
  MongodbOptions options(const std::string& more = {}) const { return options_on(server_, more); }
  MongodbOptions options_on(const std::string& url, const std::string& more = {}) const;
  std::shared_ptr<Store> open(const std::string& more = {}) const {
    return open_mongodb(options(more));
  }
  // A command on the case's database, as JSON; `$C` stands for the collection.
  std::string command(std::string json) const;
  std::string document(const std::string& mutex) const;

  std::string collection;
  const std::string database = "simba_test";
  Lines log;

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string server_;
};

// A contender on a mutex with a short lease, and how often it got and lost it.
class Contender {
 public:
  Contender(const Client& client, const std::string& mutex, const ContendOptions& options);
  bool is_owner() const { return service_->is_owner(); }
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

}  // namespace simba::mongodb
