#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "testing/servers/certificates.h"
#include "testing/servers/directory.h"
#include "testing/servers/port.h"
#include "testing/servers/server.h"

namespace simba::servers {

// Whether the environment names a `mysqld` of MySQL in SIMBA_TEST_MYSQLD: then that is started in
// place of MariaDB, everywhere.
bool tests_mysql();

// Throws Unavailable where this machine has no such server.
void need_mariadb();

struct MariadbSettings {
  std::map<std::string, std::string> config;  // as with `mariadbd --name=value`
  std::vector<std::string> environment;       // NAME=value
  bool is_durable = false;                    // what is committed survives a crash of the machine
};

// A MariaDB server on loopback, or one of MySQL, with the database `simba_db` and the user `admin`,
// who needs no password and may do everything.
class MariadbServer : public Server {
 public:
  explicit MariadbServer(MariadbSettings settings = {});

  std::uint16_t port() const { return port_.number(); }
  // A URL without TLS, of MySQL with it; `user` may be "name:password".
  std::string url(const std::string& user = "admin", const std::string& query = {}) const;
  std::filesystem::path socket() const { return directory_.path() / "my/socket"; }
  // Puts a file where the server's user can read it: a certificate, a key. Returns where.
  std::filesystem::path add_file(const std::filesystem::path& from, const std::string& name);
  // A file that its user can read. Returns where.
  std::filesystem::path write_file(const std::string& name, const std::string& content);
  // The next start is with this one too.
  void configure(const std::string& name, const std::string& value);
  // Begins anew with a copy of what another one had; neither runs.
  void take_data(const std::filesystem::path& from);

 protected:
  std::filesystem::path data() const { return directory_.path() / "my/data"; }
  void set_words(const std::vector<std::string>& more = {});

 private:
  friend class GaleraCluster;
  friend class MariadbPair;
  void certify();
  void make_database() const;

  MariadbSettings settings_;
  Directory directory_;
  std::unique_ptr<Certificates> certificates_;  // of MySQL
  Port port_;
};

// Throws Unavailable where this machine has no Galera library.
void need_galera();

// Three nodes that write together.
class GaleraCluster {
 public:
  static constexpr std::size_t kNodes = 3;

  // What each node has in its environment, NAME=value.
  using Environments = std::array<std::vector<std::string>, kNodes>;

  explicit GaleraCluster(const Environments& environments = {});  // and starts them

  MariadbServer& node(std::size_t i) { return *nodes_.at(i); }
  // After a node was stopped or killed: it joins the others.
  void rejoin(std::size_t i);

 private:
  void configure(std::size_t i);
  bool is_synced(std::size_t i) const;

  // For what they tell each other, the writes that one has missed, and a copy of all.
  std::vector<std::unique_ptr<Port>> group_ports_, transfer_ports_, copy_ports_;
  std::vector<std::unique_ptr<MariadbServer>> nodes_;
};

}  // namespace simba::servers
