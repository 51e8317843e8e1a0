#include "testing/servers/redis.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "testing/servers/tool.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kMasterName = "simba-test";

// What servers that trust each other share.
RedisSettings with_certificates(RedisSettings settings) {
  if (settings.transport == RedisSettings::Transport::kPlain || settings.certificates) {
    return settings;
  }
  auto made = std::make_shared<Certificates>();
  made->make_authority("ca");
  made->make("server", "ca", "DNS:localhost,IP:127.0.0.1");
  settings.certificates = std::move(made);
  return settings;
}

RedisSettings of_a_cluster(RedisSettings settings) {
  settings = with_certificates(std::move(settings));
  if (settings.certificates) {
    settings.config.emplace_back("tls-cluster", "yes");
    settings.config.emplace_back("tls-replication", "yes");
  }
  settings.config.emplace_back("cluster-enabled", "yes");
  settings.config.emplace_back("cluster-node-timeout", "15000");  // a busy machine is not down
  settings.config.emplace_back("cluster-allow-replica-migration", "no");  // also without slots
  settings.config.emplace_back("cluster-port", "BUS");
  return settings;
}

RedisSettings of_sentinels(RedisSettings settings) {
  settings = with_certificates(std::move(settings));
  if (settings.certificates) settings.config.emplace_back("tls-replication", "yes");
  return settings;
}

std::vector<std::string> tls_words(const RedisSettings& settings, std::uint16_t port) {
  const Certificates& known = *settings.certificates;
  return {"--tls-port",         std::to_string(port),
          "--tls-cert-file",    known.certificate("server").string(),
          "--tls-key-file",     known.key("server").string(),
          "--tls-ca-cert-file", known.certificate("ca").string(),
          "--tls-auth-clients", "optional"};
}

// By TLS, where it is spoken, and with the password that there is.
std::string scheme_of(const RedisSettings& settings, const std::string& kind) {
  return (settings.certificates ? "rediss" : "redis") + kind + "://" +
         (settings.password.empty() ? "" : ':' + settings.password + '@');
}

std::string query_of(const RedisSettings& settings, std::string query) {
  if (settings.certificates) {
    query = "ca-file=" + settings.certificates->certificate("ca").string() +
            (query.empty() ? "" : "&" + query);
  }
  return (query.empty() ? "" : "?") + query;
}

// The words that make redis-cli log in.
std::vector<std::string> login(const RedisSettings& settings) {
  if (settings.password.empty()) return {};
  return {"--no-auth-warning", "-a", settings.password};
}

std::string ask_cli(std::vector<std::string> words, std::chrono::milliseconds patience = 60s) {
  words.insert(words.begin(), "redis-cli");
  return output_of(words, patience);
}

void await(const std::string& what, const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) throw std::runtime_error("waited for " + what);
    std::this_thread::sleep_for(100ms);  // each look is a program that starts
  }
}

}  // namespace

void need_redis() {
  if (find_program({"redis-server"}).empty() || find_program({"redis-cli"}).empty()) {
    throw Unavailable("there is no Redis server (Debian: redis-server)");
  }
}

RedisServer::RedisServer(RedisSettings settings)
    : Server(Recipe{}), settings_(with_certificates(std::move(settings))) {
  need_redis();
  const bool tls = settings_.transport == RedisSettings::Transport::kTls;
  const std::string port = std::to_string(this->port()), path = directory_.path().string();
  std::vector<std::string> words{"redis-server",
                                 "--bind",
                                 "127.0.0.1",
                                 "--unixsocket",
                                 socket().string(),
                                 "--dir",
                                 path,
                                 "--save",
                                 "",
                                 "--repl-diskless-sync-delay",
                                 "0",
                                 "--daemonize",
                                 "no",
                                 "--port",
                                 tls ? "0" : port};
  if (tls) {
    const std::vector<std::string> more = tls_words(settings_, this->port());
    words.insert(words.end(), more.begin(), more.end());
  }
  if (!settings_.password.empty()) {
    words.insert(words.end(),
                 {"--requirepass", settings_.password, "--masterauth", settings_.password});
  }
  for (const auto& [name, value] : settings_.config) {
    words.push_back("--" + name);
    words.push_back(value == "BUS" ? std::to_string(bus_.number()) : value);
  }
  recipe().name = "redis";
  recipe().command.words = std::move(words);
  recipe().command.directory = directory_.path();
  recipe().command.log = directory_.path() / "log";
  recipe().is_ready = [this] {
    const std::string said = (*this)({"PING"});
    return said == "PONG" || said.starts_with("NOAUTH");
  };
}

std::string RedisServer::url(const std::string& query) const {
  return scheme_of(settings_, "") + address() + query_of(settings_, query);
}

std::string RedisServer::operator()(const std::vector<std::string>& words) const {
  std::vector<std::string> all = login(settings_);
  all.insert(all.end(), {"-s", socket().string()});
  all.insert(all.end(), words.begin(), words.end());
  return ask_cli(all);
}

void RedisServer::follow(const RedisServer& master) const {
  (*this)({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
}

std::string RedisServer::info(const std::string& name) const {
  std::istringstream lines((*this)({"INFO"}));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + ':')) continue;
    line.erase(0, name.size() + 1);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  return {};
}

class RedisSentinels::Sentinel : public Server {
 public:
  Sentinel(std::uint16_t master, const RedisSettings& settings)
      : Server(Recipe{}), settings_(settings) {
    const fs::path file = directory_.path() / "sentinel.conf";
    const std::string name = kMasterName;
    const bool tls = settings_.certificates != nullptr;
    std::ofstream out(file);
    out << "bind 127.0.0.1\nport " << (tls ? 0 : port()) << "\ndir " << directory_.path().string()
        << "\nsentinel monitor " << name << " 127.0.0.1 " << master
        << " 2\nsentinel down-after-milliseconds " << name << ' ' << settings_.down_after.count()
        << "\nsentinel failover-timeout " << name << " 5000\nsentinel parallel-syncs " << name
        << " 2\n";
    if (!settings_.password.empty()) {
      out << "requirepass " << settings_.password << "\nsentinel sentinel-pass "
          << settings_.password << "\nsentinel auth-pass " << name << ' ' << settings_.password
          << '\n';
    }
    recipe().name = "redis-sentinel";
    recipe().command.words = {"redis-server", file.string(), "--sentinel"};
    if (tls) {
      const std::vector<std::string> more = tls_words(settings_, port());
      auto& words = recipe().command.words;
      words.insert(words.end(), more.begin(), more.end());
      words.insert(words.end(), {"--tls-replication", "yes"});
    }
    recipe().command.directory = directory_.path();
    recipe().command.log = directory_.path() / "log";
    recipe().is_ready = [this] { return ask({"PING"}) == "PONG"; };
  }
  std::uint16_t port() const { return port_.number(); }
  std::string ask(const std::vector<std::string>& words) const {
    std::vector<std::string> all = login(settings_);
    all.insert(all.end(), {"-p", std::to_string(port())});
    if (settings_.certificates) {
      all.insert(all.end(),
                 {"--tls", "--cacert", settings_.certificates->certificate("ca").string()});
    }
    all.insert(all.end(), words.begin(), words.end());
    return ask_cli(all);
  }

 private:
  const RedisSettings settings_;
  Directory directory_;
  Port port_;
};

RedisSentinels::RedisSentinels(RedisSettings settings)
    : settings_(of_sentinels(std::move(settings))) {
  for (auto& server : servers_) server = std::make_unique<RedisServer>(settings_);
  for (auto& sentinel : sentinels_) {
    sentinel = std::make_unique<Sentinel>(servers_[0]->port(), settings_);
  }
}

RedisSentinels::~RedisSentinels() = default;

std::string RedisSentinels::ask(std::size_t sentinel, const std::vector<std::string>& words) const {
  return sentinels_.at(sentinel)->ask(words);
}

void RedisSentinels::start() {
  for (auto& server : servers_) server->launch();
  for (auto& server : servers_) server->await_ready();
  for (std::size_t i = 1; i < servers_.size(); ++i) servers_[i]->follow(*servers_[0]);
  await("the replicas", [&] { return servers_[0]->info("connected_slaves") == "2"; });
  for (auto& sentinel : sentinels_) sentinel->launch();
  for (auto& sentinel : sentinels_) sentinel->await_ready();
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    await("the sentinels", [&] {
      const std::string seen = ask(i, {"INFO", "sentinel"});
      return seen.find("slaves=2,sentinels=3") != std::string::npos;
    });
  }
}

std::string RedisSentinels::addresses() const {
  std::string all;
  for (const auto& each : sentinels_) {
    all += (all.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port());
  }
  return all;
}

std::string RedisSentinels::url(const std::string& query) const {
  return scheme_of(settings_, "+sentinel") + addresses() + '/' + kMasterName +
         query_of(settings_, query);
}

std::size_t RedisSentinels::master() const {
  const std::string said = ask(0, {"SENTINEL", "get-master-addr-by-name", kMasterName});
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (said.ends_with('\n' + std::to_string(servers_[i]->port()))) return i;
  }
  throw std::runtime_error("the sentinels know no master of ours: " + said);
}

void RedisSentinels::fail_over() {
  const std::size_t before = master();
  await("a failover", [&] {
    return master() != before || ask(0, {"SENTINEL", "FAILOVER", kMasterName}) == "OK";
  });
  await("a new master", [&] { return master() != before; });
  await("the old one to follow", [&] { return servers_[before]->info("role") == "slave"; });
  await("all to follow", [&] { return servers_[master()]->info("connected_slaves") == "2"; });
}

RedisCluster::RedisCluster(RedisSettings settings) : settings_(of_a_cluster(std::move(settings))) {
  for (auto& master : masters_) master = std::make_unique<RedisServer>(settings_);
}

void RedisCluster::start() {
  for (auto& master : masters_) master->launch();
  for (auto& master : masters_) master->await_ready();
  constexpr std::size_t kSlots = 16384;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const std::size_t from = kSlots * i / masters_.size(), to = kSlots * (i + 1) / masters_.size();
    (*masters_[i])({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    (*masters_[i])({"CLUSTER", "ADDSLOTSRANGE", std::to_string(from), std::to_string(to - 1)});
  }
  await("the cluster", [&] {
    for (std::size_t i = 1; i < masters_.size(); ++i) introduce(*masters_[i]);
    return std::all_of(masters_.begin(), masters_.end(), [](const auto& master) {
      const std::string info = (*master)({"CLUSTER", "INFO"});
      return info.find("cluster_state:ok") != info.npos &&
             info.find("cluster_known_nodes:3") != info.npos;
    });
  });
}

// Whom the first one does not know, nor is about to meet: on a busy machine two do not meet in the
// time they have for it, and forget it. Who is met again stands among the nodes a second time until
// it has answered.
void RedisCluster::introduce(const RedisServer& node) const {
  const std::string address = ":" + std::to_string(node.port()) + '@';
  if ((*masters_[0])({"CLUSTER", "NODES"}).find(address) != std::string::npos) return;
  (*masters_[0])({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node.port()),
                  std::to_string(node.bus_port())});
}

RedisServer& RedisCluster::add_replica(std::size_t of) {
  // A master that dies is to be succeeded soon.
  const std::vector<std::string> hastily{"CONFIG", "SET", "cluster-node-timeout", "3000"};
  RedisServer& replica = *replicas_.emplace_back(std::make_unique<RedisServer>(settings_));
  replica.start();
  await("the replica", [&] {
    introduce(replica);
    return replica({"CLUSTER", "REPLICATE", id(of)}) == "OK";  // said again, it begins anew
  });
  await("its data", [&] { return replica.info("master_link_status") == "up"; });
  // Who votes must know whom it is to succeed.
  for (const auto& master : masters_) {
    await("the others to hear of it", [&] {
      return (*master)({"CLUSTER", "NODES"}).find("slave " + id(of)) != std::string::npos;
    });
    (*master)(hastily);
  }
  replica(hastily);
  return replica;
}

std::string RedisCluster::addresses() const {
  std::string all;
  for (const auto& each : masters_) all += (all.empty() ? "" : ",") + each->address();
  return all;
}

std::string RedisCluster::url(const std::string& query) const {
  return scheme_of(settings_, "+cluster") + addresses() + query_of(settings_, query);
}

std::size_t RedisCluster::owner(unsigned slot) const {
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    std::istringstream nodes((*masters_[i])({"CLUSTER", "NODES"}));
    for (std::string line; std::getline(nodes, line);) {
      if (line.find("myself") == std::string::npos) continue;
      std::istringstream words(line);
      std::string word;
      for (int k = 0; k < 8; ++k) words >> word;
      while (words >> word) {
        if (word.starts_with('[')) continue;
        const std::size_t dash = word.find('-');
        const unsigned long from = std::stoul(word);
        const unsigned long to = dash == word.npos ? from : std::stoul(word.substr(dash + 1));
        if (slot >= from && slot <= to) return i;
      }
    }
  }
  throw std::runtime_error("nobody serves slot " + std::to_string(slot));
}

std::string RedisCluster::id(const RedisServer& node) { return node({"CLUSTER", "MYID"}); }

// What it forgets it hears no more: others are answered by it, and not believed.
void RedisCluster::cut_off_and_succeed(std::size_t master) {
  RedisServer& lost = *masters_.at(master);
  const RedisServer* heir = nullptr;
  for (const auto& replica : replicas_) {
    if (replica->info("master_port") == std::to_string(lost.port())) heir = replica.get();
  }
  if (heir == nullptr) throw std::runtime_error("nobody follows this master");
  std::istringstream nodes(lost({"CLUSTER", "NODES"}));
  for (std::string line; std::getline(nodes, line);) {
    if (line.find("myself") == line.npos)
      lost({"CLUSTER", "FORGET", line.substr(0, line.find(' '))});
  }
  (*heir)({"CLUSTER", "FAILOVER", "TAKEOVER"});
  const std::string line = id(*heir) + " 127.0.0.1:" + std::to_string(heir->port());
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (i == master) continue;
    await("the others to hear of the successor", [&] {
      const std::string known = (*masters_[i])({"CLUSTER", "NODES"});
      const std::size_t at = known.find(line);
      const std::string its = known.substr(at, known.find('\n', at) - at);
      return at != known.npos && its.find(" master ") != its.npos && !its.ends_with("connected");
    });
  }
}

void RedisCluster::begin_move(unsigned slot, std::size_t to) const {
  const std::size_t from = owner(slot);
  const std::string number = std::to_string(slot);
  (*masters_[to])({"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)});
  (*masters_[from])({"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)});
}

void RedisCluster::move_keys(unsigned slot, std::size_t from, std::size_t to) const {
  const std::string number = std::to_string(slot);
  std::istringstream keys((*masters_[from])({"CLUSTER", "GETKEYSINSLOT", number, "1000"}));
  for (std::string key; std::getline(keys, key);) {
    (*masters_[from])(
        {"MIGRATE", "127.0.0.1", std::to_string(masters_[to]->port()), key, "0", "5000"});
  }
}

void RedisCluster::end_move(unsigned slot, std::size_t from, std::size_t to) const {
  move_keys(slot, from, to);
  const std::string number = std::to_string(slot), owner_id = id(to);
  (*masters_[to])({"CLUSTER", "SETSLOT", number, "NODE", owner_id});
  for (const auto& master : masters_) (*master)({"CLUSTER", "SETSLOT", number, "NODE", owner_id});
}

void RedisCluster::move_all(std::size_t from, std::size_t to) const {
  ask_cli(
      {"--cluster", "reshard", masters_[0]->address(), "--cluster-from", id(from), "--cluster-to",
       id(to), "--cluster-slots", "16384", "--cluster-yes", "--cluster-pipeline", "100"},
      60s);
  await("the slots", [&] {
    const std::string nodes = (*masters_[from])({"CLUSTER", "NODES"});
    const std::size_t me = nodes.find("myself");
    const std::string line = nodes.substr(me, nodes.find('\n', me) - me);
    return line.ends_with("connected");
  });
}

}  // namespace simba::servers
