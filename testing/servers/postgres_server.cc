#include "testing/servers/postgres_server.h"

#include <pwd.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "testing/servers/loopback.h"
#include "testing/servers/tool.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kConfig = "postgresql.auto.conf";

// The newest version; Debian keeps the server's programs off the PATH.
std::string program(const std::string& name) {
  std::vector<std::string> candidates;
  for (int version = 20; version >= 12; --version) {
    candidates.push_back("/usr/lib/postgresql/" + std::to_string(version) + "/bin/" + name);
  }
  candidates.push_back(name);
  return find_program(candidates);
}

// PostgreSQL does not run as root.
std::string server_user() { return geteuid() == 0 ? "postgres" : ""; }

void give_to_server(const fs::path& path) {
  if (geteuid() != 0) return;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  getpwnam_r("postgres", &entry, buffer.data(), buffer.size(), &found);
  if (!found || chown(path.c_str(), entry.pw_uid, entry.pw_gid) != 0) {
    throw std::runtime_error("cannot give " + path.string() + " to the user postgres");
  }
}

// "S 4711": its state and whose child it is.
std::string stat_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name = text.rfind(") ");
  return name == text.npos ? "" : text.substr(name + 2);
}

// Looks at all there are: the kernel's own list leaves some out while others end.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const std::string stat = stat_of(name);
    if (stat.size() > 2 && std::stoi(stat.substr(2)) == parent) found.push_back(std::stoi(name));
  }
  return found;
}

// What a process of the server calls itself: "postgres: walsender ...".
std::string title_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

bool goes_on(pid_t pid) {
  const std::string stat = stat_of(std::to_string(pid));
  return !stat.empty() && stat.front() != 'T' && stat.front() != 'Z';
}

}  // namespace

void need_postgres() {
  if (program("initdb").empty() || program("postgres").empty()) {
    throw Unavailable("there is no PostgreSQL server (Debian: postgresql)");
  }
}

PostgresServer::PostgresServer(PostgresSettings settings)
    : Server(Recipe{}), settings_(std::move(settings)) {
  need_postgres();
  fs::create_directory(directory_.path() / "pg");
  give_to_server(directory_.path() / "pg");
  make_cluster();
  recipe().name = "postgres";
  recipe().command.words = {program("postgres"), "-D", data().string()};
  recipe().command.directory = directory_.path() / "pg";
  recipe().command.log = directory_.path() / "log";
  recipe().command.user = server_user();
  recipe().command.death_signal = SIGQUIT;  // ends its children too
  recipe().stop_signal = SIGINT;            // does not wait for clients
  recipe().is_ready = [this] {
    if (!listens(port())) return false;
    const std::string said = log();  // of earlier starts too
    const std::size_t began = said.rfind("starting PostgreSQL");
    return began != std::string::npos && said.find("ready to accept", began) != std::string::npos;
  };
}

void PostgresServer::make_cluster() const {
  Process made({.words = {program("initdb"), "-D", data().string(), "-A", "trust", "-U", "postgres",
                          "-E", "UTF8", "--locale=C", "-N"},
                .directory = directory_.path() / "pg",
                .log = directory_.path() / "initdb.log",
                .environment = {},
                .user = server_user()});
  if (!made.wait(30s)) throw std::runtime_error("initdb does not end");
  if (!fs::exists(data() / "PG_VERSION")) throw std::runtime_error("initdb failed");
  write_config(data() / kConfig);
}

void PostgresServer::write_config(const fs::path& where) const {
  std::ofstream file(where);
  file << "listen_addresses = '127.0.0.1'\nport = " << port() << "\nunix_socket_directories = '"
       << (directory_.path() / "pg").string()
       << "'\nshared_buffers = '16MB'\nmax_connections = 200\n"
          "dynamic_shared_memory_type = 'mmap'\n";  // goes with the directory, however it ends
  if (!settings_.is_durable) file << "fsync = off\n";
  for (const auto& [name, value] : settings_.config) file << name << " = '" << value << "'\n";
  file.close();
  if (settings_.access.empty()) return;
  std::ofstream access(data() / "pg_hba.conf");
  for (const std::string& line : settings_.access) access << line << '\n';
}

void PostgresServer::configure(const std::string& name, const std::string& value) {
  settings_.config[name] = value;
  write_config(data() / kConfig);
}

std::string PostgresServer::url(const std::string& user, const std::string& query) const {
  return "postgresql://" + user + "@127.0.0.1:" + std::to_string(port()) +
         "/postgres?sslmode=disable" + (query.empty() ? "" : "&" + query);
}

void PostgresServer::crash() {
  const std::vector<pid_t> children = children_of(pid());
  kill();
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) {
    for (int i = 0; i < 1'000 && fs::exists("/proc/" + std::to_string(child)); ++i) {
      std::this_thread::sleep_for(5ms);
    }
  }
}

void PostgresServer::pause_all() const {
  ::kill(pid(), SIGSTOP);  // first: it starts no more
  while (goes_on(pid())) std::this_thread::sleep_for(1ms);
  const std::vector<pid_t> children = children_of(pid());
  for (const pid_t child : children) ::kill(child, SIGSTOP);
  for (const pid_t child : children) {
    while (goes_on(child)) std::this_thread::sleep_for(1ms);
  }
}

void PostgresServer::resume_all() const {
  for (const pid_t child : children_of(pid())) ::kill(child, SIGCONT);
  ::kill(pid(), SIGCONT);
}

void PostgresServer::add_file(const fs::path& from, const std::string& name) {
  fs::copy_file(from, data() / name, fs::copy_options::overwrite_existing);
  fs::permissions(data() / name, fs::perms::owner_read | fs::perms::owner_write);
  give_to_server(data() / name);
}

void PostgresServer::become_standby() {
  std::ofstream(data() / "standby.signal").close();
  give_to_server(data() / "standby.signal");
}

void PostgresServer::follow(const PostgresServer& primary, const std::string& name) {
  const std::string where = "host=127.0.0.1 user=postgres port=" + std::to_string(primary.port());
  settings_.config["primary_conninfo"] = where + " application_name=" + name;
  const fs::path config = directory_.path() / kConfig;
  write_config(config);
  constexpr const char* kCopyAndFollow = R"(rm -rf "$1" && "$2" -D "$1" -d "$3" -c fast -N &&
    cp "$4" "$1/$5" && : >"$1/standby.signal" && exec "$6" -D "$1")";
  recipe().command.words = {"sh",
                            "-c",
                            kCopyAndFollow,
                            "follow",
                            data().string(),
                            program("pg_basebackup"),
                            where,
                            config.string(),
                            kConfig,
                            program("postgres")};
}

void PostgresServer::promote() const {
  Process promoted({.words = {program("pg_ctl"), "promote", "-W", "-D", data().string()},
                    .directory = directory_.path() / "pg",
                    .log = directory_.path() / "promote.log",
                    .environment = {},
                    .user = server_user()});
  if (!promoted.wait(10s)) throw std::runtime_error("pg_ctl promote does not end");
}

void PostgresServer::hold_back_standbys() const {
  for (const pid_t child : children_of(pid())) {
    if (title_of(child).find(": walsender ") == std::string::npos) continue;
    ::kill(child, SIGSTOP);
    while (goes_on(child)) std::this_thread::sleep_for(1ms);
  }
}

std::string PostgresServer::ask(const std::string& statement) const {
  return output_of({"psql", "-XAt", "-c", statement, url("postgres", "connect_timeout=5")});
}

void need_pgbouncer() {
  if (find_program({"pgbouncer", "/usr/sbin/pgbouncer"}).empty()) {
    throw Unavailable("there is no PgBouncer (Debian: pgbouncer)");
  }
}

PgBouncer::PgBouncer(std::uint16_t server_port, int server_connections) : Server(Recipe{}) {
  need_pgbouncer();
  const fs::path file = directory_.path() / "pgbouncer.ini";
  std::ofstream(file) << "[databases]\n* = host=127.0.0.1 port=" << server_port
                      << " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "
                      << port_.number()
                      << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
                         "default_pool_size = "
                      << server_connections << '\n';
  recipe().name = "pgbouncer";
  recipe().command.words = {find_program({"pgbouncer", "/usr/sbin/pgbouncer"}), file.string()};
  recipe().command.directory = directory_.path();
  recipe().command.log = directory_.path() / "log";
  recipe().command.user = server_user();
  recipe().stop_signal = SIGTERM;
  recipe().is_ready = [this] { return listens(port_.number()); };
}

std::string PgBouncer::url(const std::string& query) const {
  return "postgresql://postgres@127.0.0.1:" + std::to_string(port_.number()) +
         "/postgres?sslmode=disable" + (query.empty() ? "" : "&" + query);
}

}  // namespace simba::servers
