#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testing/servers/directory.h"
#include "testing/servers/port.h"
#include "testing/servers/server.h"

namespace simba::servers {

// Throws Unavailable where this machine has no mongod: neither on the PATH nor where script/mongod
// puts one.
void need_mongodb();

// Runs a command, written as JSON, on one server and returns its reply as JSON. Throws
// std::runtime_error with what the server says.
std::string run_mongodb_command(const std::string& url, const std::string& command,
                                const std::string& database = "admin");

// Does nothing where there is none.
void drop_mongodb_collection(const std::string& url, const std::string& database,
                             const std::string& collection);

struct MongodbSettings {
  enum class Kind {
    kAlone,    // without change streams
    kOneNode,  // a replica set of one
    kMember,   // of a MongodbSet, which initiates it
  };
  Kind kind = Kind::kOneNode;
  std::string password;              // of the user `root`; empty: everybody is let in
  std::vector<std::string> options;  // more of mongod's
  std::string query;                 // more of every URL to it: "tls=true"
};

// A mongod on loopback.
class MongodbServer : public Server {
 public:
  explicit MongodbServer(MongodbSettings settings = {});

  std::uint16_t port() const { return port_.number(); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port()); }
  // For this server alone, whatever set it is in. `user` may be "name:password".
  std::string direct_url(const std::string& user = {}) const;
  // As a user would write it.
  std::string url(const std::string& user = {}, const std::string& query = {}) const;
  std::string command(const std::string& json, const std::string& database = "admin") const;
  bool is_primary() const;

 private:
  bool look();
  void write_key() const;

  const MongodbSettings settings_;
  Directory directory_;
  Port port_;
  bool has_user_ = false;
};

// A replica set of three that elects a new primary within seconds.
class MongodbSet {
 public:
  MongodbSet();

  void start();  // and waits for a primary
  std::string url(const std::string& query = {}) const;
  MongodbServer& operator[](std::size_t index) { return *members_.at(index); }
  std::size_t primary() const;  // throws std::runtime_error when there is none
  std::size_t await_primary() const;
  void step_down() const;
  // Until all three serve and agree on a primary.
  void await_all() const;

 private:
  static constexpr std::size_t kMembers = 3;
  std::array<std::unique_ptr<MongodbServer>, kMembers> members_;
};

}  // namespace simba::servers
