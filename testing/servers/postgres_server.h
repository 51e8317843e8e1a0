#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "testing/servers/directory.h"
#include "testing/servers/port.h"
#include "testing/servers/server.h"

namespace simba::servers {

// Throws Unavailable where this machine has no PostgreSQL server.
void need_postgres();

struct PostgresSettings {
  std::map<std::string, std::string> config;  // as with `postgres -c name=value`
  std::vector<std::string> access;            // lines of pg_hba.conf; none: everybody is let in
  bool is_durable = false;                    // what is committed survives a crash of the machine
};

// A PostgreSQL server on loopback, with the superuser `postgres` and the database `postgres`.
class PostgresServer : public Server {
 public:
  explicit PostgresServer(PostgresSettings settings = {});

  std::uint16_t port() const { return port_.number(); }
  // A URL; `user` may be "name:password".
  std::string url(const std::string& user = "postgres", const std::string& query = {}) const;
  const std::filesystem::path& directory() const { return directory_.path(); }

  // SIGKILL for the server and all its processes.
  void crash();
  // SIGSTOP and SIGCONT for the same: connections stay open, nothing is answered.
  void pause_all() const;
  void resume_all() const;
  // Puts a file into the data directory that only the server's user reads: a certificate, a key.
  void add_file(const std::filesystem::path& from, const std::string& name);
  // The next start is that of a standby, which reads only until it is promoted.
  void become_standby();
  // Every start from now on is that of a standby of this one, with a new copy of its data. `name`
  // is for the primary's `synchronous_standby_names`.
  void follow(const PostgresServer& primary, const std::string& name);
  // A standby begins to lead; does not wait for it.
  void promote() const;
  // Standbys get nothing more of what is committed here, and hear of nothing, until the server
  // dies.
  void hold_back_standbys() const;
  // What a statement prints, by psql, without the last newline; or what is wrong.
  std::string ask(const std::string& statement) const;
  // The next start is with this one too.
  void configure(const std::string& name, const std::string& value);

 private:
  void make_cluster() const;
  std::filesystem::path data() const { return directory_.path() / "pg/data"; }
  void write_config(const std::filesystem::path& where) const;

  PostgresSettings settings_;
  Directory directory_;
  Port port_;
};

// Throws Unavailable where this machine has no PgBouncer.
void need_pgbouncer();

// PgBouncer in front of a server, which lends a server connection for one transaction at a time.
class PgBouncer : public Server {
 public:
  explicit PgBouncer(std::uint16_t server_port, int server_connections = 4);

  std::string url(const std::string& query = {}) const;

 private:
  Directory directory_;
  Port port_;
};

}  // namespace simba::servers
