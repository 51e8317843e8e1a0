#pragma once

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {

// Settings as `simba config` prints them, in a directory without any.
class ConfigTest : public ToolTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(file(name).parent_path());
    std::ofstream(file(name)) << text;
    chmod(file(name).c_str(), 0644);
  }
  // Without the SIMBA_STORE that the other tests have.
  Result run_tool(const Words& arguments, Words environment = {}) const {
    environment.insert(environment.end(), {"SIMBA_STORE=", "XDG_CONFIG_HOME=/nonexistent"});
    Process::Setting setting;
    setting.environment = std::move(environment);
    setting.directory = file(".");
    Words command{tool()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Process process(command, setting);
    const int code = process.wait();
    return {code, process.out(), process.err()};
  }
  std::string value(const std::string& key, const Words& flags = {},
                    const Words& environment = {}) {
    Words arguments{"config", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Result result = run_tool(arguments, environment);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json object = nlohmann::json::parse(line);
      if (object["key"] != key) continue;
      return object["value"].get<std::string>() + " from " + object["origin"].get<std::string>();
    }
    return result.err;
  }
  std::string refusal() {
    const Result result = run_tool({"config"});
    EXPECT_EQ(result.code, exit_code::kUsage) << result.out;
    return result.err;
  }
};

}  // namespace simba::cli
