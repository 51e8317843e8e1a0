#include "testing/servers/zookeeper.h"

#include <charconv>
#include <fstream>
#include <thread>

#include "testing/servers/loopback.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;  // JVMs on a busy machine
constexpr const char* kJar = "/usr/share/java/zookeeper.jar";

std::vector<std::string> java_command(const ZooKeeperSettings& settings,
                                      const std::filesystem::path& directory) {
  std::vector<std::string> words{"java",
                                 "-Xmx256m",
                                 "-XX:+UseSerialGC",
                                 "-XX:TieredStopAtLevel=1",
                                 "-Xshare:auto",
                                 "-Dzookeeper.fsync.warningthresholdms=10000"};
  if (!settings.syncs_disk) words.emplace_back("-Dzookeeper.forceSync=no");
  words.insert(words.end(), settings.java.begin(), settings.java.end());
  words.insert(words.end(), {"-cp", directory.string() + ":" + kJar,
                             "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                             (directory / "zoo.cfg").string()});
  return words;
}

}  // namespace

void need_zookeeper() {
  if (find_program({"java"}).empty())
    throw Unavailable("there is no java on the PATH (Debian: default-jre-headless)");
  if (!std::filesystem::exists(kJar)) {
    throw Unavailable(std::string("there is no ") + kJar + " (Debian: zookeeper)");
  }
}

ZooKeeperServer::ZooKeeperServer(const ZooKeeperSettings& settings)
    : Server(Recipe{}), settings_(settings) {
  need_zookeeper();
  const auto& directory = directory_.path();
  std::filesystem::create_directory(directory / "data");
  recipe().name = "zookeeper";
  recipe().command.words = java_command(settings, directory);
  recipe().command.directory = directory;
  recipe().command.log = directory / "log";
  recipe().is_ready = [this] { return ask("ruok") == "imok" && !ask("srvr").starts_with("This"); };
  write_config("", 0);
}

void ZooKeeperServer::write_config(const std::string& members, int id) {
  std::ofstream file(directory_.path() / "zoo.cfg");
  file << "tickTime=" << settings_.tick.count() << "\ndataDir=" << directory_.path().string()
       << "/data\nclientPort=" << port()
       << "\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
          "maxClientCnxns=0\nstandaloneEnabled=true\n";
  for (const auto& [name, value] : settings_.config) file << name << '=' << value << '\n';
  file << members;
  if (id != 0) std::ofstream(directory_.path() / "data/myid") << id << '\n';
}

std::string ZooKeeperServer::ask(const std::string& word,
                                 std::chrono::milliseconds patience) const {
  return servers::ask(port(), word, patience);
}

std::int64_t ZooKeeperServer::monitor(const std::string& name) const {
  const std::string all = ask("mntr", 10s);
  const std::string key = name + '\t';
  std::size_t at = all.find(key);
  while (at != std::string::npos && at != 0 && all[at - 1] != '\n') at = all.find(key, at + 1);
  if (at == std::string::npos) return -1;
  std::int64_t value = -1;
  std::from_chars(all.data() + at + key.size(), all.data() + all.size(), value);
  return value;
}

bool ZooKeeperServer::leads() const {
  return ask("srvr").find("Mode: leader") != std::string::npos;
}

bool ZooKeeperServer::follows() const {
  return ask("srvr").find("Mode: follower") != std::string::npos;
}

ZooKeeperEnsemble::ZooKeeperEnsemble(const ZooKeeperSettings& settings, Network network) {
  ZooKeeperSettings with = settings;
  with.config.try_emplace("initLimit", "10");
  with.config.try_emplace("syncLimit", "5");
  for (auto& member : members_) member = std::make_unique<ZooKeeperServer>(with);
  for (std::size_t from = 0; network == Network::kBreakable && from < kMembers; ++from) {
    for (std::size_t to = 0; to < kMembers; ++to) {
      if (from == to) continue;
      links_[from][to] = {std::make_unique<Relay>(members_[to]->quorum_.number()),
                          std::make_unique<Relay>(members_[to]->election_.number())};
    }
  }
  for (std::size_t i = 0; i < kMembers; ++i) {
    members_[i]->write_config(members_seen_by(i), static_cast<int>(i) + 1);
  }
}

// Each sees the others where its own links lead.
std::string ZooKeeperEnsemble::members_seen_by(std::size_t index) {
  std::string lines;
  for (std::size_t to = 0; to < kMembers; ++to) {
    const Link& link = links_[index][to];
    const unsigned quorum = link.quorum ? link.quorum->port() : members_[to]->quorum_.number();
    const unsigned election =
        link.election ? link.election->port() : members_[to]->election_.number();
    lines += "server." + std::to_string(to + 1) + "=127.0.0.1:" + std::to_string(quorum) + ":" +
             std::to_string(election) + "\n";
  }
  return lines;
}

void ZooKeeperEnsemble::cut(std::size_t index) {
  for (std::size_t other = 0; other < kMembers; ++other) {
    if (other == index) continue;
    for (Link* link : {&links_[index][other], &links_[other][index]}) {
      link->quorum->stall();
      link->election->stall();
    }
  }
}

void ZooKeeperEnsemble::mend() {
  for (auto& from : links_) {
    for (Link& link : from) {
      if (link.quorum) link.quorum->mend();
      if (link.election) link.election->mend();
    }
  }
}

void ZooKeeperEnsemble::start() {
  for (auto& member : members_) member->launch();
  await_quorum(members_.size());
}

void ZooKeeperEnsemble::await_quorum(std::size_t serving) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::size_t leaders = 0, followers = 0;
    for (auto& member : members_) {
      if (!member->is_running()) continue;
      const std::string mode = member->ask("srvr");
      leaders += mode.find("Mode: leader") != std::string::npos ? 1U : 0U;
      followers += mode.find("Mode: follower") != std::string::npos ? 1U : 0U;
    }
    if (leaders == 1 && leaders + followers >= serving) return;
    if (std::chrono::steady_clock::now() >= until) {
      throw std::runtime_error("no quorum; the log of the first:\n" + members_[0]->log());
    }
    std::this_thread::sleep_for(20ms);
  }
}

std::string ZooKeeperEnsemble::addresses() const {
  std::string all;
  for (const auto& member : members_) all += (all.empty() ? "" : ",") + member->address();
  return all;
}

std::size_t ZooKeeperEnsemble::find(bool (ZooKeeperServer::*is_one)() const,
                                    const char* what) const {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  do {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if ((*members_[i].*is_one)()) return i;
    }
    std::this_thread::sleep_for(20ms);
  } while (std::chrono::steady_clock::now() < until);
  throw std::runtime_error(std::string("no member ") + what);
}

std::size_t ZooKeeperEnsemble::leader() const { return find(&ZooKeeperServer::leads, "leads"); }

std::size_t ZooKeeperEnsemble::follower() const {
  return find(&ZooKeeperServer::follows, "follows");
}

}  // namespace simba::servers
