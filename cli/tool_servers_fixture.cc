#include "cli/tool_servers_fixture.h"

#include <map>
#include <random>

#include "simba/mysql.h"
#include "testing/servers/server.h"

namespace simba::cli {

bool ServerToolTest::use(const std::string& kind) {
  static const std::map<std::string, std::string> kPlaces{{"mariadb", "table="},
                                                          {"mongodb", "collection="},
                                                          {"postgres", "table="},
                                                          {"zookeeper", "base=/"}};
  try {
    server_ = std::make_unique<servers::TestServer>(kind);
  } catch (const servers::Unavailable& reason) {
    [&] { GTEST_SKIP() << reason.what(); }();
    return false;
  }
  kind_ = kind;
  place_ = "simba_tool_" + std::to_string(std::random_device{}());
  const auto parameter = kPlaces.find(kind);
  store_ = server_->url(parameter == kPlaces.end() ? "" : parameter->second + place_);
  return true;
}

std::string ServerToolTest::server() const {
  const std::string url = server_->url();
  return url.substr(0, url.find('?'));
}

std::unique_ptr<Process> ServerToolTest::begin(const Words& arguments) const {
  Process::Setting setting;
  setting.environment = {"SIMBA_STORE=" + store_};
  return start(arguments, setting);
}

ToolTest::Result ServerToolTest::ask(const Words& arguments) const {
  const auto process = begin(arguments);
  const int code = process->wait();
  return {code, process->out(), process->err()};
}

std::string ServerToolTest::sql(const std::string& statements) const {
  Words command{"/usr/bin/env", "psql", "-qAt", server_->url(), "-c", statements};
  Process::Setting setting;
  setting.directory = file(".");
  if (kind_ == "mariadb") {
    const MysqlOptions options = mysql_options(server_->url());
    const auto& [host, port] = options.hosts.at(0);
    command = {"/usr/bin/env",
               "mariadb",
               "--no-defaults",
               "-N",
               "-u" + options.user,
               "-h" + host,
               "-P" + std::to_string(port),
               options.database,
               "-e",
               statements};
    setting.environment = {"MYSQL_PWD=" + options.password};
  }
  Process client(command, setting);
  EXPECT_EQ(client.wait(), 0) << client.err();
  return client.out();
}

}  // namespace simba::cli
