#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "simba/mongodb.h"
#include "stores/kit/fixture.h"
#include "testing/servers/mongodb.h"
#include "testing/servers/shared.h"

// What the tests of this store share: a server, somebody who administers it, and a collection
// nobody else uses.
namespace simba::mongodb {

using namespace kit::fixture;  // NOLINT(google-build-using-namespace): for tests alone

// Leases of 20 s and 10 s: these servers take their time.
Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor = 0,
                 LocalTime deadline = soon());
Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  LocalTime deadline = soon());
// Until it answers: while a new primary is looked for, for example.
Observation insist(const std::function<Observation()>& call);

// A collection of its own on the server of SIMBA_TEST_MONGODB_URL, else on a replica set of one
// that all test programs share.
class MongodbTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string server() const { return server_->url(); }
  MongodbOptions options(const std::string& more = {}) const;
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
  std::unique_ptr<servers::TestServer> server_;
};

// For cases that start servers of their own.
class OwnMongodbTest : public ::testing::Test {
 protected:
  void SetUp() override;

  MongodbOptions options(const std::string& url) const;
  std::shared_ptr<Store> open(const std::string& url) const { return open_mongodb(options(url)); }
  // Of a server, or of what stands in front of it.
  static std::string url_of(std::uint16_t port, const std::string& more = {}) {
    return "mongodb://127.0.0.1:" + std::to_string(port) + "/?directConnection=true" + more;
  }
  Lines log;
};

}  // namespace simba::mongodb
