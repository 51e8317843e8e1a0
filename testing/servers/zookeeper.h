#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "testing/servers/directory.h"
#include "testing/servers/port.h"
#include "testing/servers/relay.h"
#include "testing/servers/server.h"

namespace simba::servers {

// Throws Unavailable where this machine has no ZooKeeper or no Java.
void need_zookeeper();

struct ZooKeeperSettings {
  std::chrono::milliseconds tick{2'000};
  bool syncs_disk = false;                    // a killed server loses nothing either way
  std::map<std::string, std::string> config;  // more lines of zoo.cfg
  std::vector<std::string> java;              // more options of the JVM: "-Dname=value"
};

// A ZooKeeper server on loopback, alone or one of an ensemble.
class ZooKeeperServer : public Server {
 public:
  explicit ZooKeeperServer(const ZooKeeperSettings& settings = {});

  std::uint16_t port() const { return client_.number(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  std::filesystem::path data() const { return directory_.path() / "data"; }
  // A four-letter word: "stat", "mntr", "cons", "wchs". One that begins to listen does not always
  // answer who came first: ask it again, and not for long.
  std::string ask(const std::string& word,
                  std::chrono::milliseconds patience = std::chrono::seconds(1)) const;
  // One line of `mntr`, as a number; -1 when it is not there.
  std::int64_t monitor(const std::string& name) const;
  bool leads() const;
  bool follows() const;

 private:
  friend class ZooKeeperEnsemble;
  void write_config(const std::string& members, int id);

  ZooKeeperSettings settings_;
  Directory directory_;
  Port client_, quorum_, election_;
};

// Three servers that elect a leader between them.
class ZooKeeperEnsemble {
 public:
  enum class Network {
    kDirect,
    kBreakable,  // between the servers: cut() works. Clients always reach them directly
  };
  explicit ZooKeeperEnsemble(const ZooKeeperSettings& settings = {},
                             Network network = Network::kDirect);

  void start();  // all three, and waits until one leads and two follow
  std::string addresses() const;
  ZooKeeperServer& operator[](std::size_t index) { return *members_.at(index); }
  std::size_t leader() const;    // waits for one; throws std::runtime_error when none leads
  std::size_t follower() const;  // one of the others that serve
  void await_quorum(std::size_t serving);

  // Nothing gets through between this one and the others, and nobody is told.
  void cut(std::size_t index);
  void mend();

 private:
  static constexpr std::size_t kMembers = 3;
  struct Link {
    std::unique_ptr<Relay> quorum, election;
  };
  std::string members_seen_by(std::size_t index);
  std::size_t find(bool (ZooKeeperServer::*is_one)() const, const char* what) const;

  std::array<std::unique_ptr<ZooKeeperServer>, kMembers> members_;
  std::array<std::array<Link, kMembers>, kMembers> links_;  // from, to; empty where direct
};

}  // namespace simba::servers
