#include "torture/own_servers.h"

#include <fstream>
#include <utility>

#include "testing/servers/directory.h"
#include "testing/servers/mariadb.h"
#ifdef SIMBA_TORTURES_MONGODB
#include "testing/servers/mongodb.h"
#endif
#include "testing/servers/postgres_server.h"
#include "testing/servers/redis.h"
#include "testing/servers/zookeeper.h"
#include "torture/counts.h"
#include "torture/own_sets.h"
#include "torture/shared_file.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

// A file for the clock of a server that is started with the shim, and how far off it is.
class ShiftedClock {
 public:
  std::vector<std::string> environment() const {
    return {std::string("LD_PRELOAD=") + SIMBA_SHIFT_CLOCK,
            "SIMBA_TEST_CLOCK_FILE=" + file_.string()};
  }
  void set(nanoseconds offset) {
    static_cast<std::atomic<std::int64_t>*>(memory_.memory())->store(offset.count());
  }

 private:
  static std::filesystem::path make(const std::filesystem::path& directory) {
    std::filesystem::path file = directory / "clock";
    std::ofstream(file) << std::string(sizeof(std::int64_t), '\0');
    return file;  // readable for servers that change their user
  }

  const servers::Directory directory_;
  const std::filesystem::path file_ = make(directory_.path());
  const SharedFile memory_{file_, sizeof(std::int64_t)};
};

// A server with its clock. What it has acknowledged survives SIGKILL, also where nothing is synced
// to disk: the pages are the kernel's. `kill` may need more than SIGKILL for one process.
template <class Server>
struct Own {
  explicit Own(auto settings) : server(std::move(settings)) {
    server.recipe().patience = 60s;
    for (std::string& each : clock.environment()) {
      server.recipe().command.environment.push_back(std::move(each));
    }
    server.start();
  }
  ShiftedClock clock;
  Server server;
};

template <class Server, class Kill>
Target target_at(const char* name, const std::shared_ptr<Own<Server>>& own, const Kill& kill) {
  Target target;
  target.name = name;
  target.server = Target::Server{kill,
                                 [own] { own->server.launch(); },
                                 [own] { own->server.await_ready(); },
                                 [own] { return own->server.recipe().is_ready(); },
                                 {},
                                 {}};
  target.step_clock = [own](nanoseconds offset) { own->clock.set(offset); };
  target.keeps = own;
  return target;
}

void set_url(Target& target, const std::string& url) {
  Target other = target_of(url);
  target.url = std::move(other.url);
  target.network = std::move(other.network);
  target.rules = other.rules;
  target.rules.is_ours = true;
}

Target start_sqlite() {
  const auto directory = std::make_shared<servers::Directory>();
  const auto file = directory->path() / "locks.db";
  Target target = target_of("sqlite:" + file.string());
  target.name = "sqlite";
  target.count = [file] { return count_sqlite(file); };
  target.keeps = directory;
  return target;
}

Target start_redis() {
  servers::RedisSettings settings;
  settings.config = {{"appendonly", "yes"}, {"appendfsync", "always"}};
  const auto own = std::make_shared<Own<servers::RedisServer>>(settings);
  Target target = target_at("redis", own, [own] { own->server.kill(); });
  set_url(target, own->server.url());
  target.count = [own] { return count_redis(own->server.socket()); };
  target.read_clock = [own] { return clock_of_redis(own->server.socket()); };
  return target;
}

Target start_postgres() {
  const auto own = std::make_shared<Own<servers::PostgresServer>>(servers::PostgresSettings{});
  Target target = target_at("postgres", own, [own] { own->server.crash(); });
  set_url(target, own->server.url());
  target.count = [own] { return count_postgres(own->server.url()); };
  target.read_clock = [own] { return clock_of_postgres(own->server.url()); };
  return target;
}

Target start_mariadb() {
  const auto own = std::make_shared<Own<servers::MariadbServer>>(servers::MariadbSettings{});
  Target target = target_at("mariadb", own, [own] { own->server.kill(); });
  set_url(target, own->server.url());
  target.count = [own] { return count_mariadb(own->server.socket()); };
  target.read_clock = [own] { return clock_of_mariadb(own->server.socket()); };
  return target;
}

Target start_zookeeper() {
  servers::ZooKeeperSettings settings;
  settings.tick = 500ms;
  const auto own = std::make_shared<Own<servers::ZooKeeperServer>>(settings);
  Target target = target_at("zookeeper", own, [own] { own->server.kill(); });
  set_url(target, "zookeeper://" + own->server.address() + "?session-timeout=1500&tick=500");
  target.step_clock = {};
  target.rules.old_question = {};  // there is no other server
  target.spared = {"the clock: sessions are counted by a monotonic one"};
  target.count = [own] { return count_zookeeper(own->server.port()); };
  return target;
}

Target start_mongodb() {
#ifdef SIMBA_TORTURES_MONGODB
  const auto own = std::make_shared<Own<servers::MongodbServer>>(servers::MongodbSettings{});
  Target target = target_at("mongodb", own, [own] { own->server.kill(); });
  set_url(target, own->server.url());
  const AskMongodb ask = [own](const std::string& command, const std::string& on) {
    return own->server.command(command, on);
  };
  target.count = [ask] { return count_mongodb(ask); };
  target.read_clock = [ask] { return clock_of_mongodb(ask); };
  return target;
#else
  throw servers::Unavailable("there is no MongoDB driver to set a server up with");
#endif
}

// A line per store. Three servers on one busy machine take longer to agree than a short lease
// allows.
constexpr OwnStore kStores[] = {
    {"sqlite", start_sqlite, 1000ms, 500ms},
    {"mariadb", start_mariadb, 1000ms, 500ms},
    {"postgres", start_postgres, 1000ms, 500ms},
    {"redis", start_redis, 1000ms, 500ms},
    {"zookeeper", start_zookeeper, 1000ms, 500ms},
    {"mongodb", start_mongodb, 1000ms, 500ms},
    {"zookeeper-ensemble", start_zookeeper_ensemble, 2000ms, 1000ms},
    {"mongodb-set", start_mongodb_set, 2000ms, 1000ms},
    {"redis-sentinels", start_redis_sentinels, 2000ms, 1000ms},
    {"galera-cluster", start_galera, 2000ms, 1000ms},
    {"mariadb-replica", start_mariadb_replica, 2000ms, 1000ms},
    {"postgres-standby", start_postgres_standby, 2000ms, 1000ms},
    {"postgres-asynchronous", start_postgres_asynchronous, 2000ms, 1000ms},
};

}  // namespace

const OwnStore* own_store(std::string_view name) {
  for (const OwnStore& store : kStores) {
    if (name == store.name) return &store;
  }
  return nullptr;
}

std::string own_store_names() {
  std::string names;
  for (const OwnStore& store : kStores) names += std::string(" ") + store.name;
  return names;
}

}  // namespace simba::torture
