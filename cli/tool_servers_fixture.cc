#include "cli/tool_servers_fixture.h"

#include <random>
#include <regex>

#include "testing/servers/server.h"

namespace simba::cli {

bool ServerToolTest::use(const std::string& kind) {
  try {
    shared_ = std::make_unique<servers::SharedServer>(kind);
  } catch (const servers::Unavailable& reason) {
    [&] { GTEST_SKIP() << reason.what(); }();
    return false;
  }
  kind_ = kind;
  place_ = "simba_tool_" + std::to_string(std::random_device{}());
  server_ = shared_->address();
  const auto with = [&](const std::string& parameter) {
    return server_ + (server_.find('?') == server_.npos ? "?" : "&") + parameter + place_;
  };
  if (kind == "redis") store_ = server_ = "redis://" + server_ + "?restart-guard=off";
  if (kind == "zookeeper") store_ = "zookeeper://" + server_ + "?base=/" + place_;
  if (kind == "mongodb") store_ = with("collection=");
  if (kind == "mariadb" || kind == "postgres") store_ = with("table=");
  return true;
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
  Words command{"/usr/bin/env", "psql", "-qAt", server_, "-c", statements};
  if (kind_ == "mariadb") {
    static const std::regex url("mariadb://([^@]*)@([^:]*):([0-9]+)/([^?]*).*");
    std::smatch part;
    EXPECT_TRUE(std::regex_match(server_, part, url)) << server_;
    command = {"/usr/bin/env",
               "mariadb",
               "--no-defaults",
               "-N",
               "-u" + part[1].str(),
               "-h" + part[2].str(),
               "-P" + part[3].str(),
               part[4].str(),
               "-e",
               statements};
  }
  Process::Setting setting;
  setting.directory = file(".");
  Process client(command, setting);
  EXPECT_EQ(client.wait(), 0) << client.err();
  return client.out();
}

}  // namespace simba::cli
