#pragma once

#include <memory>
#include <string>

#include "cli/tool_fixture.h"
#include "testing/servers/shared.h"

namespace simba::cli {

// The tool on a real server, the user's own or that which all test programs share
// (servers::TestServer), in a place there that nobody else uses.
class ServerToolTest : public ToolTest {
 protected:
  // "mariadb", "mongodb", "postgres", "redis", "zookeeper". False: skipped, with the reason.
  bool use(const std::string& kind);
  const std::string& store() const { return store_; }
  const std::string& place() const { return place_; }  // table, collection or node
  // The server's own URL, as the superuser, without parameters.
  std::string server() const;

  Result ask(const Words& arguments) const;
  std::unique_ptr<Process> begin(const Words& arguments) const;
  // Runs SQL by the server's own client; what it prints.
  std::string sql(const std::string& statements) const;

 private:
  std::unique_ptr<servers::TestServer> server_;
  std::string kind_, store_, place_;
};

}  // namespace simba::cli
