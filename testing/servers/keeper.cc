// simba_keep_server KIND: starts a server, says where it is, and stops it once nobody uses it. See
// shared.h. Returns when the server is ready; the keeper goes on in the background.
//
// simba_keep_server --end: ends all such servers that nobody uses now. Returns when they are gone.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "testing/servers/directory.h"
#include "testing/servers/mariadb.h"
#ifdef SIMBA_KEEPS_MONGODB
#include "testing/servers/mongodb.h"
#endif
#include "testing/servers/postgres_server.h"
#include "testing/servers/redis.h"
#include "testing/servers/server.h"
#include "testing/servers/zookeeper.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// A running server, and what its users have to know.
struct Kept {
  std::shared_ptr<void> server;
  std::string address;
};

Kept keep_zookeeper() {
  ZooKeeperSettings settings;
  settings.tick = 500ms;  // sessions of 1.5 s are allowed, and with this of five minutes too
  settings.config["maxSessionTimeout"] = "300000";
  auto server = std::make_shared<ZooKeeperServer>(settings);
  server->start();
  return {server, server->address()};
}

Kept keep_postgres() {
  PostgresSettings settings;  // members of the role simba_passwords need theirs, others are let in
  settings.access = {"host all +simba_passwords 127.0.0.1/32 scram-sha-256",
                     "host all all 127.0.0.1/32 trust", "local all all trust"};
  auto server = std::make_shared<PostgresServer>(settings);
  server->start();
  return {server, server->url()};
}

Kept keep_mariadb() {
  auto server = std::make_shared<MariadbServer>();
  server->start();
  return {server, server->url()};
}

Kept keep_redis() {
  auto server = std::make_shared<RedisServer>();
  server->start();
  return {server, server->address()};
}

Kept keep_mongodb([[maybe_unused]] const std::string& password) {
#ifdef SIMBA_KEEPS_MONGODB
  MongodbSettings settings;
  settings.password = password;
  auto server = std::make_shared<MongodbServer>(settings);
  server->start();
  return {server, server->url(password.empty() ? "" : "root:" + password)};
#else
  throw Unavailable("there is no MongoDB driver to set a server up with (Debian: libmongoc-dev)");
#endif
}

// A line per kind.
const std::map<std::string, std::function<Kept()>>& kinds() {
  static const std::map<std::string, std::function<Kept()>> table{
      {"mariadb", keep_mariadb},
      {"mysql", keep_mariadb},
      {"mongodb", [] { return keep_mongodb({}); }},
      {"mongodb-users", [] { return keep_mongodb("canary-4711"); }},
      {"postgres", keep_postgres},
      {"redis", keep_redis},
      {"zookeeper", keep_zookeeper},
  };
  return table;
}

// Never half of it: who reads the file sees all or nothing.
void write(const fs::path& file, const std::string& content) {
  const fs::path half = file.string() + ".half";
  std::ofstream(half) << content;
  fs::rename(half, file);
}

UniqueFd open_file(const fs::path& file) {
  return UniqueFd(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
}

bool try_lock(const UniqueFd& file) { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

// Holds the start lock when it returns: nobody can begin to use what is about to end. Who asks for
// the end (end_unused) is heard where nobody uses the server, and refused elsewhere.
UniqueFd wait_until_unused(const fs::path& place) {
  for (auto unused_since = std::chrono::steady_clock::now();;) {
    std::this_thread::sleep_for(100ms);
    const auto now = std::chrono::steady_clock::now();
    UniqueFd start = open_file(place / "start.lock");
    const UniqueFd use = open_file(place / "use.lock");
    if (!try_lock(start)) {
      unused_since = now;
    } else if (!try_lock(use)) {
      unused_since = now;
      fs::remove(place / "unneeded");
    } else if (now - unused_since > 10s || fs::exists(place / "unneeded")) {
      return start;
    }
  }
}

// `ready` is closed when there is something to read in `place`.
void keep(const std::string& kind, const fs::path& place, UniqueFd ready) {
  UniqueFd keeper = open_file(place / "keeper.lock");
  if (!try_lock(keeper)) return;
  Kept kept;
  try {
    kept = kinds().at(kind)();
    write(place / "address", kept.address);
  } catch (const Unavailable& reason) {
    write(place / "unavailable", reason.what());
  } catch (const std::exception& trouble) {
    write(place / "failed", trouble.what());
  }
  ready = UniqueFd();
  const bool is_up = kept.server != nullptr;
  const UniqueFd start = is_up ? wait_until_unused(place) : UniqueFd();
  fs::remove(place / "address");
  kept.server.reset();
  keeper = UniqueFd();  // before `start`: the next user must not think that the server is kept
}

int run(const std::string& kind) {
  const fs::path place = shared_directory("shared/" + kind);
  int pipe_ends[2];  // NOLINT(modernize-avoid-c-arrays)
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return 1;
  const UniqueFd told(pipe_ends[0]);
  UniqueFd ready(pipe_ends[1]);
  const pid_t child = ::fork();
  if (child != 0) {
    ready = UniqueFd(-1);
    char nothing = 0;
    while (::read(told.get(), &nothing, 1) > 0) continue;
    return 0;
  }
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(null, standard);
  keep(kind, place, std::move(ready));
  return 0;
}

// Whether a keeper goes on there. The start lock is held for that moment: who starts to use a
// server must not take ours for the keeper's.
bool is_kept(const fs::path& place) {
  const UniqueFd start = open_file(place / "start.lock");
  return !try_lock(start) || !try_lock(open_file(place / "keeper.lock"));
}

// Until the keeper is gone or has refused, which it tells by removing what we have put there.
void end_unused() {
  const auto until = std::chrono::steady_clock::now() + 30s;
  for (const auto& entry : fs::directory_iterator(shared_directory("shared"))) {
    if (is_kept(entry.path())) std::ofstream(entry.path() / "unneeded") << std::flush;
  }
  for (const auto& entry : fs::directory_iterator(shared_directory("shared"))) {
    const fs::path unneeded = entry.path() / "unneeded";
    while (fs::exists(unneeded) && is_kept(entry.path())) {
      if (std::chrono::steady_clock::now() >= until) break;
      std::this_thread::sleep_for(20ms);
    }
    fs::remove(unneeded);
  }
}

}  // namespace
}  // namespace simba::servers

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: simba_keep_server KIND | --end\n", stderr);
    return 2;
  }
  try {
    if (argv[1] != std::string_view("--end")) return simba::servers::run(argv[1]);
    simba::servers::end_unused();
    return 0;
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "simba_keep_server: %s\n", trouble.what());
    return 1;
  }
}
