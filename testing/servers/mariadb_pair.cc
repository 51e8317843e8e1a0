#include "testing/servers/mariadb_pair.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "testing/servers/tool.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;

void await(const char* what, const std::function<bool()>& is_true) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error(std::string("MariaDB: ") + what + " does not happen");
    }
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace

MariadbPair::MariadbPair() {
  if (tests_mysql()) throw Unavailable("MySQL's replication has other names");
  MariadbSettings settings;
  settings.config = {{"log-bin", "log"},
                     {"relay-log", "relay"},
                     {"log-slave-updates", "ON"},
                     {"binlog-format", "ROW"},
                     {"server-id", "1"},
                     {"rpl-semi-sync-master-wait-point", "AFTER_SYNC"},
                     {"rpl-semi-sync-master-timeout", "3600000"},
                     {"rpl-semi-sync-master-wait-no-slave", "ON"},
                     {"rpl-semi-sync-slave-enabled", "ON"}};
  for (auto& server : servers_) server = std::make_unique<MariadbServer>(settings);
}

void MariadbPair::start() {
  servers_[0]->start();
  ask(0,
      "CREATE USER contender@'%'; GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO "
      "contender@'%'");
  servers_[0]->stop();
  std::filesystem::copy(servers_[0]->data(), first_.path() / "data",
                        std::filesystem::copy_options::recursive);
  servers_[0]->start();
  follow(1);
  servers_[1]->await_ready();
  await("following", [this] {
    return ask(1, "SHOW SLAVE STATUS\\G").find("Waiting for master") != std::string::npos;
  });
  ask(0, "SET GLOBAL rpl_semi_sync_master_enabled = ON");
  await("replication", [this] { return is_whole(); });
}

std::string MariadbPair::url() const {
  return "mariadb://contender@127.0.0.1:" + std::to_string(servers_[0]->port()) +
         ",127.0.0.1:" + std::to_string(servers_[1]->port()) + "/simba_db?sslmode=disable";
}

std::size_t MariadbPair::primary() const {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i]->is_running() && ask(i, "SELECT @@read_only") == "0") return i;
  }
  throw std::runtime_error("neither of the two servers leads");
}

bool MariadbPair::is_whole() const {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::string question =
        "SELECT group_concat(variable_value ORDER BY variable_name) FROM "
        "information_schema.global_status WHERE variable_name IN "
        "('RPL_SEMI_SYNC_MASTER_CLIENTS', 'RPL_SEMI_SYNC_MASTER_STATUS')";
    if (servers_[i]->is_running() && ask(i, question) == "1,ON") return true;
  }
  return false;
}

void MariadbPair::fail_over() {
  const std::size_t leader = primary(), heir = 1 - leader;
  servers_[leader]->kill();
  promote(heir);
}

void MariadbPair::promote(std::size_t heir) {
  // What was received was acknowledged, also what is not done yet.
  const std::string status =
      ask(heir, "STOP SLAVE IO_THREAD; SHOW SLAVE STATUS\\G", "--column-names");
  const std::string marker = "Gtid_IO_Pos: ";
  const std::size_t at = std::min(status.find(marker), status.size());
  const std::string received = status.substr(at, status.find('\n', at) - at);
  const std::string position = received.substr(std::min(marker.size(), received.size()));
  if (position.empty() || ask(heir, "SELECT MASTER_GTID_WAIT('" + position + "', 60)") != "0")
    throw std::runtime_error("MariaDB: the replica does not catch up: " + status);
  // Before it may be written to: alone it acknowledges nothing.
  ask(heir,
      "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL rpl_semi_sync_master_enabled = ON; "
      "SET GLOBAL read_only = OFF");
}

void MariadbPair::follow(std::size_t index) {
  MariadbServer& server = *servers_.at(index);
  server.configure("server-id", std::to_string(++last_id_));
  server.configure("read-only", "ON");
  server.configure("init-file",
                   server
                       .write_file("follow.sql",
                                   "SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_binlog_pos;\n"
                                   "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = " +
                                       std::to_string(servers_.at(1 - index)->port()) +
                                       ", MASTER_USER = 'admin', MASTER_CONNECT_RETRY = 1, "
                                       "MASTER_USE_GTID = slave_pos;\nSTART SLAVE;\n")
                       .string());
  server.take_data(first_.path() / "data");
  server.launch();
}

std::string MariadbPair::ask(std::size_t index, const std::string& sql,
                             const std::string& option) const {
  return output_of({"mariadb", "--no-defaults", "--socket=" + servers_.at(index)->socket().string(),
                    "--user=root", "--batch", option, "--execute=" + sql},
                   90s);
}

}  // namespace simba::servers
