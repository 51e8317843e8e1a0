#include "stores/mongodb/mongodb_fixture.h"

#include <random>

namespace simba::mongodb {

Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor,
                 LocalTime deadline) {
  return observed(contend(store, {mutex, wire_id, 0, floor, 20s, 10s}, deadline));
}

Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  LocalTime deadline) {
  return observed(contend(store, {mutex, wire_id, token, 0, 20s, 10s}, deadline));
}

Observation insist(const std::function<Observation()>& call) {
  Observation seen;
  const bool came = eventually(
      [&] {
        try {
          seen = call();
          return true;
        } catch (const Error& error) {
          if (!error.is_transient()) throw;
          return false;
        }
      },
      60s);
  if (!came) throw Error(Errc::kTimeout, "no answer in a minute");
  return seen;
}

void MongodbTest::SetUp() {
  try {
    server_ = std::make_unique<servers::TestServer>("mongodb");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  collection = "locks_" + std::to_string(std::random_device{}());
}

void MongodbTest::TearDown() {
  if (server_) servers::drop_mongodb_collection(server(), database, collection);
}

MongodbOptions MongodbTest::options(const std::string& more) const {
  MongodbOptions made = mongodb_options(server_->url(more));
  made.database = database;
  made.collection = collection;
  made.log = log.sink();
  return made;
}

std::string MongodbTest::command(std::string json) const {
  if (const auto at = json.find("$C"); at != json.npos) json.replace(at, 2, collection);
  return servers::run_mongodb_command(server(), json, database);
}

std::string MongodbTest::document(const std::string& mutex) const {
  return command(R"({"find": "$C", "filter": {"_id": ")" + mutex + R"("}})");
}

void OwnMongodbTest::SetUp() {
  try {
    servers::need_mongodb();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
}

MongodbOptions OwnMongodbTest::options(const std::string& url) const {
  MongodbOptions made = mongodb_options(url);
  made.log = log.sink();
  return made;
}

}  // namespace simba::mongodb
