#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/servers/certificates.h"
#include "testing/servers/directory.h"
#include "testing/servers/port.h"
#include "testing/servers/server.h"

namespace simba::servers {

// Throws Unavailable where this machine has no Redis server.
void need_redis();

struct RedisSettings {
  enum class Transport { kPlain, kTls };
  Transport transport = Transport::kPlain;  // kTls: nothing else is spoken on its port
  // Of TLS: "ca", and "server", which it certifies; null: of its own.
  std::shared_ptr<const Certificates> certificates = nullptr;
  std::string password = {};  // of the default user, also of sentinels; empty: anybody may do all
  // For how long a master has to be silent until sentinels elect another.
  std::chrono::milliseconds down_after{1'000};
  // More options of redis-server: {"appendonly", "yes"}.
  std::vector<std::pair<std::string, std::string>> config;
};

// A Redis server on loopback, alone, one of a cluster, or followed by others. It keeps nothing on
// disk unless it is told to.
class RedisServer : public Server {
 public:
  explicit RedisServer(RedisSettings settings = {});

  std::uint16_t port() const { return port_.number(); }
  std::uint16_t bus_port() const { return bus_.number(); }  // of a cluster
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  std::filesystem::path socket() const { return directory_.path() / "r.sock"; }
  // Of TLS: who vouches for the server.
  std::filesystem::path authority() const { return settings_.certificates->certificate("ca"); }
  const Certificates& certificates() const { return *settings_.certificates; }
  // `redis://127.0.0.1:port`, or `rediss://` with the authority.
  std::string url(const std::string& query = {}) const;
  // A command, by redis-cli; what it prints, without the last newline.
  std::string operator()(const std::vector<std::string>& words) const;
  void follow(const RedisServer& master) const;
  // One line of INFO; empty where it is not there.
  std::string info(const std::string& name) const;

 private:
  const RedisSettings settings_;
  Directory directory_;
  Port port_, bus_;
};

// A master, two replicas and three sentinels that watch over them, all with the same settings.
class RedisSentinels {
 public:
  explicit RedisSentinels(RedisSettings settings = {});
  ~RedisSentinels();

  void start();                   // and waits until the sentinels know each other and the replicas
  std::string addresses() const;  // of the sentinels
  std::string url(const std::string& query = {}) const;
  RedisServer& operator[](std::size_t index) { return *servers_.at(index); }
  // A command for one of the sentinels, by redis-cli.
  std::string ask(std::size_t sentinel, const std::vector<std::string>& words) const;
  // Where the sentinels say that the master is.
  std::size_t master() const;
  // Makes another server the master, and waits until the old one follows it.
  void fail_over();

 private:
  class Sentinel;

  const RedisSettings settings_;
  std::array<std::unique_ptr<RedisServer>, 3> servers_;
  std::array<std::unique_ptr<Sentinel>, 3> sentinels_;
};

// Three masters that share the slots, and replicas where they are asked for.
class RedisCluster {
 public:
  explicit RedisCluster(RedisSettings settings = {});

  void start();  // and waits until all slots are served
  std::string addresses() const;
  std::string url(const std::string& query = {}) const;
  RedisServer& operator[](std::size_t index) { return *masters_.at(index); }
  // One more server, which follows this master and is chosen when it dies. It lives as the cluster.
  RedisServer& add_replica(std::size_t of);
  // From now on it knows none of the others and goes on as it was; its replica succeeds it.
  void cut_off_and_succeed(std::size_t master);
  // Who serves a slot.
  std::size_t owner(unsigned slot) const;
  // Begins to move a slot: keys that are not here any more are asked for there.
  void begin_move(unsigned slot, std::size_t to) const;
  void move_keys(unsigned slot, std::size_t from, std::size_t to) const;
  // Moves what is left of its keys, and tells everybody.
  void end_move(unsigned slot, std::size_t from, std::size_t to) const;
  // Every slot that one has, keys and all.
  void move_all(std::size_t from, std::size_t to) const;

 private:
  std::string id(std::size_t index) const { return id(*masters_[index]); }
  static std::string id(const RedisServer& node);
  void introduce(const RedisServer& node) const;

  const RedisSettings settings_;
  std::array<std::unique_ptr<RedisServer>, 3> masters_;
  std::vector<std::unique_ptr<RedisServer>> replicas_;
};

}  // namespace simba::servers
