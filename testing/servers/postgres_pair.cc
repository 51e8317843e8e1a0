#include "testing/servers/postgres_pair.h"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace simba::servers {
namespace {

using namespace std::chrono_literals;

constexpr const char* kStandby = "standby";

}  // namespace

PostgresPair::PostgresPair(PostgresSettings settings) : settings_(std::move(settings)) {
  settings_.config.try_emplace("synchronous_standby_names", kStandby);
  for (auto& server : servers_) server = std::make_unique<PostgresServer>(settings_);
}

void PostgresPair::start() {
  servers_[0]->start();
  follow(1);
  servers_[1]->await_ready();
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!is_whole()) {
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("the standby does not follow; its log:\n" + servers_[1]->log());
    }
    std::this_thread::sleep_for(20ms);
  }
}

std::string PostgresPair::url(const std::string& query) const {
  return "postgresql://postgres@127.0.0.1:" + std::to_string(servers_[0]->port()) +
         ",127.0.0.1:" + std::to_string(servers_[1]->port()) + "/postgres?sslmode=disable" +
         (query.empty() ? "" : "&" + query);
}

std::size_t PostgresPair::primary() const {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i]->is_running() && servers_[i]->ask("SELECT pg_is_in_recovery()") == "f")
      return i;
  }
  throw std::runtime_error("neither of the two servers leads");
}

bool PostgresPair::is_whole() const {
  const std::string question =
      "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'";
  const std::string state =
      settings_.config.at("synchronous_standby_names").empty() ? "async" : "sync";
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i]->is_running() && servers_[i]->ask(question) == state) {
      return servers_[1 - i]->recipe().is_ready();
    }
  }
  return false;
}

void PostgresPair::fail_over() {
  const std::size_t leader = primary();
  servers_[leader]->crash();
  servers_[1 - leader]->promote();
}

void PostgresPair::follow(std::size_t index) {
  servers_.at(index)->follow(*servers_.at(1 - index), kStandby);
  servers_.at(index)->launch();
}

}  // namespace simba::servers
