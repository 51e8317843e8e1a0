#include "torture/own_sets.h"

#include <cstdlib>
#include <thread>

#ifdef SIMBA_TORTURES_MONGODB
#include "testing/servers/mongodb.h"
#endif
#include "testing/servers/mariadb.h"
#include "testing/servers/mariadb_pair.h"
#include "testing/servers/postgres_pair.h"
#include "testing/servers/redis.h"
#include "testing/servers/tool.h"
#include "testing/servers/zookeeper.h"
#include "torture/counts.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

// A set, and who of it was killed last. `leader_of` throws std::runtime_error where nobody leads.
template <class Set>
struct Failing {
  explicit Failing(auto&&... settings) : set(settings...) {}
  Set set;
  std::size_t dead = 0;
};

template <class Set, class LeaderOf>
Target target_of_set(const char* name, const std::shared_ptr<Failing<Set>>& own,
                     const LeaderOf& leader_of) {
  Target target;
  target.name = name;
  target.server.emplace();
  target.server->kill = [own, leader_of] {
    own->dead = leader_of(own->set);
    own->set[own->dead].kill();
  };
  target.server->launch = [own] { own->set[own->dead].launch(); };
  target.server->is_ready = [own, leader_of] {
    try {
      return own->set[leader_of(own->set)].is_running();
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  target.server->has_heir = [own, leader_of] {
    try {
      return leader_of(own->set) != own->dead;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  target.keeps = own;
  return target;
}

void set_url(Target& target, const std::string& url) {
  target.url = url;
  target.rules = target_of(url).rules;
  target.rules.is_ours = true;
}

void await_whole(const std::function<bool()>& is_whole) {
  const LocalTime patience = BootClock::now() + 120s;
  while (!is_whole()) {
    if (BootClock::now() > patience) throw std::runtime_error("the servers do not find together");
    std::this_thread::sleep_for(50ms);
  }
}

// Of Galera all nodes write; the first that serves is the one that clients use.
struct Galera : servers::GaleraCluster {
  servers::MariadbServer& operator[](std::size_t index) { return node(index); }
  // How many nodes the cluster of this one has; 0: it does not serve.
  int size(std::size_t index) {
    const std::string question =
        "SELECT variable_value FROM information_schema.global_status "
        "WHERE variable_name = 'WSREP_CLUSTER_SIZE' AND 'ON' IN (SELECT variable_value FROM "
        "information_schema.global_status WHERE variable_name = 'WSREP_READY')";
    const std::string said = servers::output_of(
        {"mariadb", "--no-defaults", "--socket=" + node(index).socket().string(), "--user=root",
         "--batch", "--skip-column-names", "--execute=" + question});
    return std::atoi(said.c_str());  // NOLINT(cert-err34-c): 0 where it is none
  }
  // The first whose cluster has this many.
  std::size_t first_of(int nodes) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (node(i).is_running() && size(i) == nodes) return i;
    }
    throw std::runtime_error("no node serves");
  }
};

// What two servers have in common of which one follows the other, and we promote.
template <class Pair>
Target target_of_pair(const char* name, const std::shared_ptr<Failing<Pair>>& own) {
  Target target = target_of_set(name, own, [](const Pair& pair) { return pair.primary(); });
  set_url(target, own->set.url());
  target.server->kill = [own] {
    own->dead = own->set.primary();
    own->set.fail_over();
  };
  const auto is_whole = [own] {
    try {
      return own->set.is_whole();
    } catch (const std::runtime_error&) {  // it does not answer
      return false;
    }
  };
  target.server->is_ready = is_whole;
  target.server->await_ready = [is_whole] { await_whole(is_whole); };
  target.spared = {"the network: clients know two addresses", "the clock"};
  return target;
}

// Nobody but us elects here: with the kill of the primary goes the promotion of the standby.
Target start_postgres_pair(const char* name, const servers::PostgresSettings& settings) {
  const auto own = std::make_shared<Failing<servers::PostgresPair>>(settings);
  own->set.start();
  Target target = target_of_pair(name, own);
  target.server->hold_back = [own] { own->set[own->set.primary()].hold_back_standbys(); };
  target.server->launch = [own] {
    await_whole([own] { return own->set[1 - own->dead].ask("SELECT pg_is_in_recovery()") == "f"; });
    own->set.follow(own->dead);
  };
  target.count = [own] { return count_postgres(own->set.url("target_session_attrs=read-write")); };
  return target;
}

}  // namespace

Target start_zookeeper_ensemble() {
  servers::ZooKeeperSettings settings;
  settings.tick = 500ms;
  const auto own = std::make_shared<Failing<servers::ZooKeeperEnsemble>>(settings);
  own->set.start();
  Target target =
      target_of_set("zookeeper-ensemble", own, [](servers::ZooKeeperEnsemble& ensemble) {
        static_cast<void>(ensemble.follower());  // or it leads nobody
        return ensemble.leader();
      });
  set_url(target, "zookeeper://" + own->set.addresses() + "?session-timeout=3000&tick=500");
  target.server->await_ready = [own] { own->set.await_quorum(3); };
  target.spared = {"the network: clients know three addresses", "the clock: it is a monotonic one"};
  return target;
}

Target start_mongodb_set() {
#ifdef SIMBA_TORTURES_MONGODB
  const auto own = std::make_shared<Failing<servers::MongodbSet>>();
  own->set.start();
  Target target = target_of_set("mongodb-set", own,
                                [](const servers::MongodbSet& set) { return set.primary(); });
  set_url(target, own->set.url());
  target.server->await_ready = [own] { own->set.await_all(); };
  target.spared = {"the network: clients find the members by themselves", "the clock"};
  return target;
#else
  throw servers::Unavailable("there is no MongoDB driver to set a server up with");
#endif
}

Target start_redis_sentinels() {
  servers::RedisSettings settings;
  settings.config = {{"appendonly", "yes"}, {"appendfsync", "always"}};
  // On a busy machine a flush holds a master up for a second, and one that is succeeded while it
  // lives goes on granting: two owners that no fault of ours explains.
  settings.down_after = 3s;
  const auto own = std::make_shared<Failing<servers::RedisSentinels>>(settings);
  own->set.start();
  Target target = target_of_set("redis-sentinels", own,
                                [](const servers::RedisSentinels& set) { return set.master(); });
  set_url(target, own->set.url());
  // Sentinels would write into its file whom it is to follow; it has none.
  target.server->launch = [own] {
    servers::RedisServer& back = own->set[own->dead];
    std::vector<std::string>& words = back.recipe().command.words;
    const std::vector<std::string> usual = words;
    words.insert(words.end(),
                 {"--replicaof", "127.0.0.1", std::to_string(own->set[own->set.master()].port())});
    back.launch();
    words = usual;
  };
  const auto is_whole = [own] {
    const servers::RedisServer& master = own->set[own->set.master()];
    return master.info("role") == "master" && master.info("connected_slaves") == "2";
  };
  target.server->is_ready = is_whole;
  target.server->await_ready = [is_whole] { await_whole(is_whole); };
  target.forgets = true;
  target.spared = {"the network: clients ask the sentinels", "the clock"};
  return target;
}

Target start_galera() {
  const auto own = std::make_shared<Failing<Galera>>();
  Target target =
      target_of_set("galera-cluster", own, [](Galera& cluster) { return cluster.first_of(3); });
  std::string url = "mysql://admin@";
  for (std::size_t i = 0; i < Galera::kNodes; ++i) {
    url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(own->set[i].port());
  }
  set_url(target, url + "/simba_db?sslmode=disable");
  target.server->has_heir = [own] {
    try {
      return own->set.first_of(2) != own->dead;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  target.server->await_ready = [is_ready = target.server->is_ready] { await_whole(is_ready); };
  target.spared = {"the network: clients know three addresses", "the clock"};
  return target;
}

Target start_mariadb_replica() {
  const auto own = std::make_shared<Failing<servers::MariadbPair>>();
  own->set.start();
  Target target = target_of_pair("mariadb-replica", own);
  target.server->launch = [own] { own->set.follow(own->dead); };
  // The URL could be of a Galera cluster; here one server writes, and refuses by what it has
  // itself.
  target.rules.old_refusal = {};
  return target;
}

Target start_postgres_standby() { return start_postgres_pair("postgres-standby", {}); }

Target start_postgres_asynchronous() {
  servers::PostgresSettings settings;
  settings.config["synchronous_standby_names"] = "";
  Target target = start_postgres_pair("postgres-asynchronous", settings);
  target.forgets = true;
  return target;
}

}  // namespace simba::torture
