// Settings: flags over variables over a file over defaults, and where each came from.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

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
      const Json object = Json::parse(line);
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

TEST_F(ConfigTest, WithoutAFileEverythingIsTheDefault) {
  EXPECT_EQ(value("store"), "sqlite: from default");
  EXPECT_EQ(value("ttl"), "10s from default");
  EXPECT_THAT(run_tool({"config"}).out, HasSubstr("transition     6s"));
}

TEST_F(ConfigTest, FlagsBeatVariablesBeatTheFile) {
  write("simba.yaml", "simba:\n  store: sqlite:a.db\n  ttl: 20s\n");
  EXPECT_EQ(value("ttl"), "20s from simba.yaml:3");
  EXPECT_EQ(value("ttl", {}, {"SIMBA_TTL=30s"}), "30s from SIMBA_TTL");
  EXPECT_EQ(value("ttl", {"--ttl", "40s"}, {"SIMBA_TTL=30s"}), "40s from --ttl");
  EXPECT_EQ(value("store"), "sqlite:a.db from simba.yaml:2");
  EXPECT_EQ(value("store", {}, {"SIMBA_STORE=sqlite:b.db"}), "sqlite:b.db from SIMBA_STORE");
  EXPECT_EQ(value("store", {"--store", "sqlite:c.db"}), "sqlite:c.db from --store");
}

TEST_F(ConfigTest, TheFileIsWhereItIsLookedFor) {
  write("home/simba/simba.yaml", "simba: {ttl: 21s}\n");
  write("other.yaml", "simba: {ttl: 22s}\n");
  const Words home{"XDG_CONFIG_HOME=" + file("home").string()};
  EXPECT_THAT(value("ttl", {}, home), HasSubstr("21s from " + file("home").string()));
  EXPECT_EQ(value("ttl", {}, {"SIMBA_CONFIG=other.yaml"}), "22s from other.yaml:1");
  EXPECT_EQ(value("ttl", {"--config", "other.yaml"}), "22s from other.yaml:1");
  EXPECT_THAT(value("ttl", {"--config", "missing.yaml"}),
              HasSubstr("there is no file 'missing.yaml', which --config names"));
}

TEST_F(ConfigTest, CommandsGoByIt) {
  write("simba.yaml", "simba:\n  store: sqlite:" + file("mine.db").string() +
                          "\n  ttl: 3s\n  transition: 2s\n  id: configured\n");
  EXPECT_EQ(run_tool({"run", "x", "--", "sh", "-c", tool() + " show --json x > shown"}).code, 0);
  const Json shown = Json::parse(read_file(file("shown")));
  EXPECT_EQ(shown["label"], "configured");
  EXPECT_LE(shown["lease_left_ms"], 5000);
}

TEST_F(ConfigTest, AFileOfTheJvmProjectIsTakenAndSaysWhatIsMissing) {
  const std::string jvm =
      "spring:\n  application:\n    name: app\nsimba:\n  jdbc:\n    enabled: true\n    ttl: 11s\n"
      "    transition: 7s\n    initial-delay: 1s\n";
  write("simba.yaml", jvm);
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: simba.jdbc is there, but not where the store is: "
                                   "add 'store: mysql://USER@HOST/DATABASE'"));
  const Words mysql{"--store", "mysql://db/app"};
  EXPECT_EQ(value("ttl", mysql), "11s from simba.yaml:7");
  EXPECT_EQ(value("transition", {"--store", "postgresql://db/app"}), "7s from simba.yaml:8");
  EXPECT_EQ(value("initial-delay", mysql), "1s from simba.yaml:9");
  EXPECT_EQ(value("ttl", {"--store", "sqlite:a.db"}), "10s from default") << "of another store";
}

TEST_F(ConfigTest, EveryStoreHasItsSectionsAndTheNarrowestHasTheFirstWord) {
  struct Row {
    const char *url, *section;
  };
  for (const Row& row : {Row{"mysql://db/app", "mysql"}, Row{"mysql://db/app", "jdbc"},
                         Row{"mariadb://db/app", "mysql"}, Row{"mariadb://db/app", "jdbc"},
                         Row{"postgresql://db/app", "postgres"}, Row{"postgresql://db/app", "jdbc"},
                         Row{"redis://cache", "redis"}, Row{"rediss://cache", "redis"},
                         Row{"redis+sentinel://cache/main", "redis"},
                         Row{"rediss+cluster://cache", "redis"}, Row{"zookeeper://zk", "zookeeper"},
                         Row{"mongodb://m/app", "mongodb"}, Row{"mongodb+srv://m/app", "mongodb"},
                         Row{"sqlite:a.db", "sqlite"}, Row{"memory:a", "memory"}}) {
    const std::string start = "simba:\n  store: " + std::string(row.url) + "\n  ttl: 20s\n  ";
    write("simba.yaml", start + row.section + ":\n    ttl: 3s\n");
    EXPECT_EQ(value("ttl"), "3s from simba.yaml:5") << row.url << ' ' << row.section;
    write("simba.yaml", start + row.section + ":\n    enabled: false\n");
    EXPECT_THAT(refusal(),
                HasSubstr("simba.yaml:5: simba." + std::string(row.section) + ".enabled is false"))
        << row.url;
  }
  write("simba.yaml", "simba:\n  jdbc: {ttl: 4s}\n  mysql: {ttl: 3s}\n");
  EXPECT_EQ(value("ttl", {"--store", "mariadb://db/app"}), "3s from simba.yaml:3");
  EXPECT_EQ(value("ttl", {"--store", "postgresql://db/app"}), "4s from simba.yaml:2");
}

TEST_F(ConfigTest, PropertiesWithDotsAreTheSame) {
  write("simba.yaml", "simba.redis.ttl: 12s\nsimba.store: redis://cache\n");
  EXPECT_EQ(value("ttl"), "12s from simba.yaml:1");
  write(
      "simba.yaml",
      "simba.enabled: true\nsimba:\n  store: redis://cache\n  redis.ttl: 12s\n  enabled: false\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: 'enabled' stands here twice"));
  write("simba.yaml",
        "simba.enabled: true\nspring.x: y\nsimba:\n  store: redis://cache\n  redis.ttl: 12s\n");
  EXPECT_EQ(value("ttl"), "12s from simba.yaml:5");
}

// The parser of YAML made documents of it until there was no memory left.
TEST_F(ConfigTest, WhatBeginsNothingIsRefusedAndNotReadForEver) {
  write("simba.yaml", ",\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:1: nothing of YAML begins like this"));
}

TEST_F(ConfigTest, ASecondDocumentIsLeftAloneOrRefusedButNotPassedOver) {
  const std::string first = "simba:\n  store: sqlite:a.db\n---\n";
  write("simba.yaml", first + "spring:\n  config.activate.on-profile: prod\n---\n");
  EXPECT_EQ(value("store"), "sqlite:a.db from simba.yaml:2");
  write("simba.yaml", first + "spring:\n  profiles: prod\nsimba:\n  ttl: 3s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:6: 'simba' stands in a second document (after "
                                   "'---'); write all of it in the first one"));
  write("simba.yaml", first + "---\nsimba.ttl: 3s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: 'simba.ttl' stands in a second document"));
}

TEST_F(ConfigTest, AStoreThatIsSwitchedOffIsNotUsed) {
  write("simba.yaml", "simba:\n  store: redis://cache\n  redis:\n    enabled: false\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4: simba.redis.enabled is false"));
}

TEST_F(ConfigTest, WhatIsWrongNamesTheLineAndWhatIsAllowed) {
  write("simba.yaml", "simba:\n  tll: 10s\n");
  EXPECT_THAT(refusal(),
              HasSubstr("simba.yaml:2: 'tll' is not known; did you mean 'ttl'? It can be "
                        "store, store-file, id, ttl,"));
  write("simba.yaml", "simba:\n  ttl: 10\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:2: ttl is '10' without a unit"));
  write("simba.yaml", "simba:\n  ttl: [1, 2]\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:2: 'ttl' has to be one value"));
  write("simba.yaml", "simba:\n  jdbc:\n    enabled: maybe\n");
  EXPECT_THAT(refusal(),
              HasSubstr("simba.yaml:3: 'jdbc.enabled' is 'maybe'; it can be true or false"));
  write("simba.yaml", "simba:\n  enabled: maybe\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:2: 'enabled' is 'maybe'; it can be true or false"));
  write("simba.yaml", "simba:\n  store: sqlite:a.db\n  jdbc: {ttl: bogus}\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:3: jdbc.ttl is 'bogus', which is no duration"));
  write("simba.yaml", "simba.zzzzzzzz: 1\n");
  EXPECT_THAT(refusal(),
              HasSubstr("simba.yaml:1: 'zzzzzzzz' is not known. It can be store, store-file, id, "
                        "ttl, transition, initial-delay, kill-after, jdbc, mysql,"));
  write("simba.yaml", "simba:\n  ttl: 1s\n  ttl: 2s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:3: 'ttl' stands here twice"));
  write("simba.yaml", "ttl: 1s\n");
  EXPECT_THAT(refusal(),
              HasSubstr("simba.yaml:1: 'ttl' is not known here; everything stands under"));
  write("simba.yaml", "simba: [\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:"));
  EXPECT_THAT(value("ttl", {}, {"SIMBA_TTL=x"}), HasSubstr("simba.yaml:"));
  write("simba.yaml", "");
  EXPECT_THAT(value("ttl", {}, {"SIMBA_TTL=x"}), HasSubstr("SIMBA_TTL: ttl is 'x'"));
}

// Whoever looks at the settings first and whoever runs a program hear the same.
TEST_F(ConfigTest, WhatCannotWorkNamesWhereItWasSaid) {
  struct Row {
    std::string in_file;
    Words environment, flags;
    std::string answer;
  };
  const std::string long_id(250, 'i');
  const std::vector<Row> rows{
      {"ttl: 1ms", {}, {}, "simba.yaml:2: with ttl 1 ms, transition 6000 ms"},
      {"ttl: 0", {}, {}, "simba.yaml:2: ttl is 0 ms; it must be between 1 ms and one year"},
      {"ttl: 1ms",
       {"SIMBA_TRANSITION=1s"},
       {},
       "simba.yaml:2, SIMBA_TRANSITION: with ttl 1 ms, transition 1000 ms"},
      {"", {"SIMBA_TTL=1ms"}, {}, "SIMBA_TTL: with ttl 1 ms"},
      {"", {}, {"--ttl", "1ms"}, "--ttl: with ttl 1 ms"},
      {"ttl: 1ms", {}, {"--transition", "1s"}, "simba.yaml:2, --transition: with ttl 1 ms"},
      {"initial-delay: 9000h", {}, {}, "simba.yaml:2: initial-delay is '9000h', longer than 365d"},
      {"kill-after: 9s", {}, {}, "simba.yaml:2: kill-after is 9000ms, but with ttl 10000ms"},
      {"", {"SIMBA_KILL_AFTER=9s"}, {}, "SIMBA_KILL_AFTER: kill-after is 9000ms, but with"},
      {"", {}, {"--kill-after", "9s"}, "--kill-after is 9000ms, but with ttl 10000ms"},
      {"id: " + long_id, {}, {}, "simba.yaml:2: the contender id 'iiii"},
      {"", {"SIMBA_ID=" + long_id}, {}, "SIMBA_ID: the contender id 'iiii"},
      {"", {}, {"--id", "a\nb"}, "--id: the contender id 'a?b' contains a control character"},
  };
  for (const Row& row : rows) {
    write("simba.yaml", "simba:\n  " + row.in_file + '\n');
    for (const Words& command : {Words{"config"}, Words{"run"}, Words{"lead"}}) {
      Words words = command;
      words.insert(words.end(), row.flags.begin(), row.flags.end());
      if (command[0] != "config") words.insert(words.end(), {"x", "--", "true"});
      const Result result = run_tool(words, row.environment);
      EXPECT_EQ(result.code, exit_code::kUsage) << command[0] << ": " << row.answer;
      EXPECT_THAT(result.err, HasSubstr("simba: " + row.answer)) << command[0];
      EXPECT_EQ(result.out, "");
    }
  }
}

TEST_F(ConfigTest, AnIdThatOnlyThisStoreCannotHoldNamesWhereItWasSaidToo) {
  const std::string id = "tenant@@app";  // Redis has another meaning for it
  write("simba.yaml", "simba:\n  store: redis://127.0.0.1:1\n  id: " + id + '\n');
  EXPECT_EQ(value("id"), id + " from simba.yaml:3");
  for (const char* command : {"run", "lead"}) {
    const Result result = run_tool({command, "x", "--", "true"});
    if (result.err.find("no store serves") != std::string::npos) GTEST_SKIP() << result.err;
    EXPECT_EQ(result.code, exit_code::kUsage);
    EXPECT_THAT(result.err, HasSubstr("simba.yaml:3: ")) << command;
    EXPECT_THAT(result.err, HasSubstr("@@"));
  }
}

TEST_F(ConfigTest, PasswordsAreLeftOutAndMayStandInAFile) {
  write("url", "postgresql://app:canary@db/app?sslpassword=canary2&x=1\n");
  const Words in_file{"SIMBA_STORE_FILE=" + file("url").string()};
  EXPECT_EQ(value("store", {}, in_file),
            "postgresql://app:***@db/app?sslpassword=***&x=1 from SIMBA_STORE_FILE");
  write("url",
        "mongodb://db/?tlsCertificateKeyFilePassword=canary&x=1&authMechanismProperties="
        "AWS_SESSION_TOKEN:canary\n");
  EXPECT_EQ(value("store", {}, in_file),
            "mongodb://db/?tlsCertificateKeyFilePassword=***&x=1&authMechanismProperties=*** from "
            "SIMBA_STORE_FILE");
  write("url", "postgresql://app:canary@db/app?sslpassword=canary2&x=1\n");
  write("simba.yaml", "simba:\n  store-file: url\n");
  EXPECT_THAT(value("store"), Not(HasSubstr("canary")));
  EXPECT_THAT(value("store"), HasSubstr("postgresql://app:***@db"));
  write("simba.yaml", "simba:\n  store-file: nowhere\n");
  EXPECT_THAT(refusal(), HasSubstr("no URL can be read from 'nowhere', which simba.yaml:2 names"));
}

TEST_F(ConfigTest, AFileThatEverybodyCanWriteIsRefused) {
  write("simba.yaml", "simba: {ttl: 1s}\n");
  chmod(file("simba.yaml").c_str(), 0666);
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml can be written by everybody"));
}

}  // namespace
}  // namespace simba::cli
