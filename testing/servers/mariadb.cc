#include "testing/servers/mariadb.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "testing/servers/loopback.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kGalera = "/usr/lib/galera/libgalera_smm.so";

// Of MySQL; empty: MariaDB is tested.
std::string mysqld() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  const char* const named = std::getenv("SIMBA_TEST_MYSQLD");
  return named != nullptr ? named : "";
}

std::string server_program() {
  return tests_mysql() ? find_program({mysqld()})
                       : find_program({"mariadbd", "/usr/sbin/mariadbd"});
}
// Makes a directory with data: MySQL's server does so itself.
std::string install_program() {
  return tests_mysql() ? server_program() : find_program({"mariadb-install-db"});
}

// MariaDB does not run as root.
std::string server_user() { return geteuid() == 0 ? "mysql" : ""; }

void give_to_server(const fs::path& path) {
  if (geteuid() != 0) return;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  getpwnam_r("mysql", &entry, buffer.data(), buffer.size(), &found);
  if (!found || chown(path.c_str(), entry.pw_uid, entry.pw_gid) != 0) {
    throw std::runtime_error("cannot give " + path.string() + " to the user mysql");
  }
}

void give_all_to_server(const fs::path& path) {
  give_to_server(path);
  for (const auto& each : fs::recursive_directory_iterator(path)) give_to_server(each.path());
}

}  // namespace

bool tests_mysql() { return !mysqld().empty(); }

void need_mariadb() {
  if (!server_program().empty() && !install_program().empty()) return;
  throw Unavailable(tests_mysql() ? "there is no " + mysqld()
                                  : "there is no MariaDB server (Debian: mariadb-server)");
}

MariadbServer::MariadbServer(MariadbSettings settings)
    : Server(Recipe{}), settings_(std::move(settings)) {
  need_mariadb();
  // With a place for temporary tables of its own: servers clear theirs of others' when they start.
  for (const char* place : {"my", "my/tmp"}) {
    fs::create_directory(directory_.path() / place);
    give_to_server(directory_.path() / place);
  }
  if (tests_mysql()) certify();
  make_database();
  recipe().name = "mariadb";
  recipe().command.directory = directory_.path() / "my";
  recipe().command.log = directory_.path() / "log";
  recipe().command.user = server_user();
  recipe().command.environment = settings_.environment;
  recipe().is_ready = [this] {
    if (!listens(port())) return false;
    const std::string said = log();  // of earlier starts too
    const std::size_t began =
        said.rfind(tests_mysql() ? "starting as process" : "Starting MariaDB");
    return began != std::string::npos &&
           said.find("ready for connections", began) != std::string::npos;
  };
  set_words();
}

// Passwords of MySQL's own kind are given to a server alone that proves who it is.
void MariadbServer::certify() {
  certificates_ = std::make_unique<Certificates>();
  certificates_->make_authority("ca");
  certificates_->make("server", "ca", "IP:127.0.0.1");
  add_file(certificates_->certificate("server"), "server.crt");
  add_file(certificates_->key("server"), "server.key");
}

void MariadbServer::make_database() const {
  const fs::path first = directory_.path() / "first.sql";
  std::ofstream(first) << "CREATE DATABASE simba_db;\n"
                          "FLUSH PRIVILEGES;\n"
                          "CREATE USER admin@'%';\n"
                          "GRANT ALL PRIVILEGES ON *.* TO admin@'%' WITH GRANT OPTION;\n";
  std::vector<std::string> words{install_program(), "--no-defaults", "--datadir=" + data().string(),
                                 "--tmpdir=" + (directory_.path() / "my/tmp").string()};
  if (tests_mysql()) {
    words.insert(words.end(),
                 {"--initialize-insecure", "--secure-file-priv=NULL",
                  "--loose-innodb-redo-log-capacity=16M", "--init-file=" + first.string()});
  } else {
    words.insert(words.end(), {"--auth-root-authentication-method=normal", "--skip-test-db",
                               "--skip-name-resolve", "--extra-file=" + first.string()});
  }
  Process made({.words = words,
                .directory = directory_.path() / "my",
                .log = directory_.path() / "install.log",
                .environment = {},
                .user = server_user()});
  if (!made.wait(60s)) throw std::runtime_error(words[0] + " does not end");
  if (!fs::exists(data() / "simba_db")) throw std::runtime_error(words[0] + " made no database");
}

void MariadbServer::set_words(const std::vector<std::string>& more) {
  std::vector<std::string>& words = recipe().command.words;
  words = {server_program(),
           "--no-defaults",
           "--datadir=" + data().string(),
           "--tmpdir=" + (directory_.path() / "my/tmp").string(),
           "--socket=" + socket().string(),
           "--port=" + std::to_string(port()),
           "--bind-address=127.0.0.1",
           "--pid-file=" + (directory_.path() / "my/pid").string(),
           "--skip-name-resolve",
           "--innodb-buffer-pool-size=16M",
           "--max-connections=1000"};
  if (tests_mysql()) {
    words.insert(words.end(), {"--loose-innodb-redo-log-capacity=16M", "--loose-mysqlx=OFF",
                               "--secure-file-priv=NULL", "--skip-log-bin",
                               "--ssl-cert=" + (directory_.path() / "my/server.crt").string(),
                               "--ssl-key=" + (directory_.path() / "my/server.key").string()});
  } else {
    words.emplace_back("--innodb-log-file-size=16M");
  }
  if (!settings_.is_durable) {
    words.insert(words.end(),
                 {"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"});
    if (!tests_mysql()) words.emplace_back("--sync-frm=OFF");
  }
  for (const auto& [name, value] : settings_.config) {
    words.push_back(std::string("--").append(name).append(1, '=').append(value));
  }
  words.insert(words.end(), more.begin(), more.end());
}

void MariadbServer::configure(const std::string& name, const std::string& value) {
  settings_.config[name] = value;
  set_words();
}

std::string MariadbServer::url(const std::string& user, const std::string& query) const {
  const std::string tls = certificates_ ? "sslrootcert=" + certificates_->certificate("ca").string()
                                        : "sslmode=disable";
  return "mariadb://" + user + "@127.0.0.1:" + std::to_string(port()) + "/simba_db?" + tls +
         (query.empty() ? "" : "&" + query);
}

fs::path MariadbServer::add_file(const fs::path& from, const std::string& name) {
  fs::path to = directory_.path() / "my" / name;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  fs::permissions(to, fs::perms::owner_read);
  give_to_server(to);
  return to;
}

fs::path MariadbServer::write_file(const std::string& name, const std::string& content) {
  fs::path to = directory_.path() / "my" / name;
  std::ofstream(to) << content;
  give_to_server(to);
  return to;
}

void MariadbServer::take_data(const fs::path& from) {
  fs::remove_all(data());
  fs::copy(from, data(), fs::copy_options::recursive);
  give_all_to_server(data());
}

void need_galera() {
  need_mariadb();
  if (tests_mysql()) throw Unavailable("MySQL has no Galera");
  if (!fs::exists(kGalera)) throw Unavailable("there is no Galera library (Debian: galera-4)");
}

GaleraCluster::GaleraCluster(const Environments& environments) {
  need_galera();
  for (std::size_t i = 0; i < kNodes; ++i) {
    group_ports_.push_back(std::make_unique<Port>());
    transfer_ports_.push_back(std::make_unique<Port>());
    copy_ports_.push_back(std::make_unique<Port>());
    nodes_.push_back(std::make_unique<MariadbServer>(
        MariadbSettings{.config = {}, .environment = environments.at(i)}));
    nodes_[i]->recipe().patience = 60s;
  }
  for (std::size_t i = 0; i < kNodes; ++i) configure(i);
  // The others start with a copy of the first one's data, so that nothing has to be transferred.
  MariadbServer& first = node(0);
  first.set_words({"--wsrep-new-cluster"});
  first.start();
  first.stop();
  for (std::size_t i = 1; i < kNodes; ++i) {
    node(i).take_data(first.data());
    fs::remove(node(i).data() / "gvwstate.dat");
  }
  first.start();
  first.set_words();
  for (std::size_t i = 1; i < kNodes; ++i) rejoin(i);
}

void GaleraCluster::configure(std::size_t i) {
  std::string all;
  for (const auto& port : group_ports_) {
    all += (all.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port->number()));
  }
  const std::string mine = std::to_string(group_ports_[i]->number());
  MariadbServer& one = node(i);
  one.configure("wsrep-on", "ON");
  one.configure("wsrep-provider", kGalera);
  one.configure("wsrep-cluster-name", "simba");
  one.configure("wsrep-cluster-address", "gcomm://" + all);
  one.configure("wsrep-node-address", "127.0.0.1:" + mine);
  one.configure("wsrep-sst-method", "rsync");
  // Else all clusters of a machine would take 4444.
  one.configure("wsrep-sst-receive-address",
                "127.0.0.1:" + std::to_string(copy_ports_[i]->number()));
  one.configure("binlog-format", "ROW");
  one.configure("innodb-autoinc-lock-mode", "2");
  // A machine that stands still for less than eight seconds divides no cluster; as long does it
  // take until one that was killed is missed.
  one.configure("wsrep-provider-options",
                "gmcast.listen_addr=tcp://127.0.0.1:" + mine +
                    ";ist.recv_addr=127.0.0.1:" + std::to_string(transfer_ports_[i]->number()) +
                    ";gcache.size=16M;evs.suspect_timeout=PT8S;evs.inactive_timeout=PT16S;"
                    "evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.5S");
}

bool GaleraCluster::is_synced(std::size_t i) const {
  const std::string said = nodes_[i]->log();
  const std::size_t began = said.rfind("Starting MariaDB");
  return began != std::string::npos &&
         said.find("Synchronized with group, ready for connections", began) != std::string::npos;
}

void GaleraCluster::rejoin(std::size_t i) {
  node(i).start();
  for (int tries = 0; tries < 12'000 && !is_synced(i); ++tries) std::this_thread::sleep_for(10ms);
  if (!is_synced(i)) throw std::runtime_error("a node does not join its cluster");
}

}  // namespace simba::servers
