#include "testing/servers/mongodb.h"

#include <mongoc/mongoc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "testing/servers/loopback.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kSet = "rs0";

// Where script/mongod puts the one it fetches.
std::string fetched() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody sets them
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  const fs::path base = cache && *cache ? fs::path(cache) : fs::path(home ? home : "/") / ".cache";
  return (base / "simba/mongod-6.0.5/mongod").string();
}

std::string program() { return find_program({"mongod", fetched()}); }

void start_driver() {
  static const bool started = [] {
    mongoc_init();
    mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
    return true;
  }();
  static_cast<void>(started);
}

// While it fails, until patience ends.
void insist(const char* what, const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  for (std::string why;;) {
    try {
      if (done()) return;
    } catch (const std::runtime_error& trouble) {
      why = trouble.what();
    }
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error(std::string("mongodb: waited in vain for ") + what + ": " + why);
    }
    std::this_thread::sleep_for(20ms);
  }
}

std::string member(std::size_t id, const std::string& host) {
  return R"({"_id": )" + std::to_string(id) + R"(, "host": ")" + host + R"("})";
}

std::string initiate(const std::string& members) {
  return std::string(R"({"replSetInitiate": {"_id": ")") + kSet + R"(", "members": [)" + members +
         R"(], "settings": {"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500}}})";
}

}  // namespace

void need_mongodb() {
  if (program().empty()) {
    throw Unavailable(
        "there is no mongod: neither on the PATH nor fetched by script/mongod, which needs the "
        "network and pip (Debian: python3-pip)");
  }
}

std::string run_mongodb_command(const std::string& url, const std::string& command,
                                const std::string& database) {
  start_driver();
  const std::unique_ptr<mongoc_uri_t, void (*)(mongoc_uri_t*)> uri(mongoc_uri_new(url.c_str()),
                                                                   mongoc_uri_destroy);
  if (!uri) throw std::runtime_error("not a MongoDB URI: " + url);
  mongoc_uri_set_option_as_int32(uri.get(), MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 3'000);
  mongoc_uri_set_option_as_int32(uri.get(), MONGOC_URI_SOCKETTIMEOUTMS, 10'000);
  const std::unique_ptr<mongoc_client_t, void (*)(mongoc_client_t*)> client(
      mongoc_client_new_from_uri(uri.get()), mongoc_client_destroy);
  if (!client) throw std::runtime_error("the driver refuses this MongoDB URI: " + url);
  mongoc_client_set_error_api(client.get(), MONGOC_ERROR_API_VERSION_2);
  bson_error_t error{};
  bson_t* parsed = bson_new_from_json(reinterpret_cast<const std::uint8_t*>(command.data()),
                                      static_cast<ssize_t>(command.size()), &error);
  if (parsed == nullptr) throw std::runtime_error(command + ": " + error.message);
  bson_t reply;
  const bool done =
      mongoc_client_command_simple(client.get(), database.c_str(), parsed, nullptr, &reply, &error);
  bson_destroy(parsed);
  char* json = bson_as_relaxed_extended_json(&reply, nullptr);
  std::string text = json != nullptr ? json : "";
  bson_free(json);
  bson_destroy(&reply);
  if (!done) throw std::runtime_error(command + ": " + error.message);
  return text;
}

void drop_mongodb_collection(const std::string& url, const std::string& database,
                             const std::string& collection) {
  try {
    run_mongodb_command(url, R"({"drop": ")" + collection + R"("})", database);
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).find("ns not found") == std::string_view::npos) throw;
  }
}

MongodbServer::MongodbServer(MongodbSettings settings)
    : Server(Recipe{}), settings_(std::move(settings)) {
  need_mongodb();
  const fs::path data = directory_.path() / "d";
  fs::create_directory(data);
  Recipe& how = recipe();
  how.name = "mongod";
  how.command.words = {program(),
                       "--dbpath",
                       data.string(),
                       "--port",
                       std::to_string(port()),
                       "--bind_ip",
                       "127.0.0.1",
                       "--unixSocketPrefix",
                       directory_.path().string(),
                       "--wiredTigerCacheSizeGB",
                       "0.25",
                       "--setParameter",
                       "diagnosticDataCollectionEnabled=false"};
  const auto add = [&](std::vector<std::string> words) {
    for (std::string& word : words) how.command.words.push_back(std::move(word));
  };
  if (settings_.kind != MongodbSettings::Kind::kAlone) {
    add({"--replSet", kSet, "--oplogSize", "64"});
  }
  if (!settings_.password.empty()) {
    write_key();
    // As few rounds as it takes: each connection of a client does them again.
    add({"--auth", "--keyFile", (directory_.path() / "key").string(), "--setParameter",
         "scramSHA256IterationCount=5000", "--setParameter", "scramIterationCount=5000"});
  }
  add(settings_.options);
  how.command.directory = directory_.path();
  how.command.log = directory_.path() / "log";
  how.is_ready = [this] { return listens(port()) && look(); };
}

// Members of a set that knows users prove themselves with it.
void MongodbServer::write_key() const {
  const fs::path key = directory_.path() / "key";
  std::ofstream(key) << "c2ltYmEtdGVzdC1rZXk=\n";
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
}

// Whether it serves; makes it a set of one, and the user, where that is to be done.
bool MongodbServer::look() try {
  const std::string hello = run_mongodb_command(direct_url(), R"({"hello": 1})");
  if (settings_.kind == MongodbSettings::Kind::kMember) return true;
  const bool is_new = hello.find("\"isreplicaset\"") != hello.npos;
  if (is_new) run_mongodb_command(direct_url(), initiate(member(0, host())));
  if (hello.find("\"isWritablePrimary\" : true") == hello.npos) return false;
  if (!settings_.password.empty() && !std::exchange(has_user_, true)) {
    run_mongodb_command(direct_url(), R"({"createUser": "root", "pwd": ")" + settings_.password +
                                          R"(", "roles": ["root"]})");
  }
  return true;
} catch (const std::runtime_error&) {
  return false;
}

std::string MongodbServer::direct_url(const std::string& user) const {
  return "mongodb://" + (user.empty() ? "" : user + "@") + host() + "/?directConnection=true" +
         (settings_.query.empty() ? "" : "&" + settings_.query);
}

std::string MongodbServer::url(const std::string& user, const std::string& query) const {
  const bool alone = settings_.kind == MongodbSettings::Kind::kAlone;
  return "mongodb://" + (user.empty() ? "" : user + "@") + host() + "/?" +
         (alone ? "directConnection=true" : std::string("replicaSet=") + kSet) +
         (settings_.query.empty() ? "" : "&" + settings_.query) +
         (query.empty() ? "" : "&" + query);
}

std::string MongodbServer::command(const std::string& json, const std::string& database) const {
  const std::string user = settings_.password.empty() ? "" : "root:" + settings_.password;
  return run_mongodb_command(direct_url(user), json, database);
}

bool MongodbServer::is_primary() const try {
  const std::string hello = run_mongodb_command(direct_url(), R"({"hello": 1})");
  return hello.find("\"isWritablePrimary\" : true") != hello.npos;
} catch (const std::runtime_error&) {
  return false;
}

MongodbSet::MongodbSet() {
  for (auto& each : members_) {
    MongodbSettings settings;
    settings.kind = MongodbSettings::Kind::kMember;
    each = std::make_unique<MongodbServer>(settings);
  }
}

void MongodbSet::start() {
  std::string all;
  for (auto& each : members_) each->launch();
  for (std::size_t i = 0; i < kMembers; ++i) {
    members_[i]->await_ready();
    all += (i > 0 ? ", " : "") + member(i, members_[i]->host());
  }
  members_[0]->command(initiate(all));
  await_all();
}

std::string MongodbSet::url(const std::string& query) const {
  std::string hosts;
  for (const auto& each : members_) hosts += (hosts.empty() ? "" : ",") + each->host();
  return "mongodb://" + hosts + "/?replicaSet=" + kSet + (query.empty() ? "" : "&" + query);
}

std::size_t MongodbSet::primary() const {
  for (std::size_t i = 0; i < kMembers; ++i) {
    if (members_[i]->is_running() && members_[i]->is_primary()) return i;
  }
  throw std::runtime_error("the set has no primary");
}

std::size_t MongodbSet::await_primary() const {
  std::size_t found = 0;
  insist("a primary", [&] {
    found = primary();
    return true;
  });
  return found;
}

void MongodbSet::step_down() const {
  insist("a step-down", [&] {
    members_[primary()]->command(R"({"replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 3})");
    return true;
  });
}

void MongodbSet::await_all() const {
  insist("all members", [&] {
    const std::string status = members_[primary()]->command(R"({"replSetGetStatus": 1})");
    std::size_t serving = 0;
    for (const char* state : {"\"PRIMARY\"", "\"SECONDARY\""}) {
      for (auto at = status.find(state); at != status.npos; at = status.find(state, at + 1)) {
        ++serving;
      }
    }
    return serving >= kMembers;
  });
}

}  // namespace simba::servers
