// Settings: flags over variables over a file over defaults, and where each came from.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/config_fixture.h"
#include "cli/exit_codes.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

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

TEST_F(ConfigTest, OfSeveralFilesTheNearestIsReadAndNoOther) {
  const std::string home = file("home").string();
  const Words at_home{"HOME=" + home, "XDG_CONFIG_HOME="};
  EXPECT_EQ(value("ttl", {}, at_home), "10s from default");
  write("home/.config/simba/simba.yaml", "simba: {ttl: 20s, transition: 7s}\n");
  EXPECT_EQ(value("ttl", {}, at_home), "20s from " + home + "/.config/simba/simba.yaml:1");
  EXPECT_THAT(value("ttl", {}, {"HOME=" + home, "XDG_CONFIG_HOME=relative"}), HasSubstr("20s"))
      << "a path that is not absolute is to be passed over";
  write("xdg/simba/simba.yaml", "simba: {ttl: 21s}\n");
  Words more{"HOME=" + home, "XDG_CONFIG_HOME=" + file("xdg").string()};
  EXPECT_THAT(value("ttl", {}, more), HasSubstr("21s from " + file("xdg").string()));
  EXPECT_EQ(value("transition", {}, more), "6s from default") << "two files were read";
  write("simba.yaml", "simba: {ttl: 22s}\n");
  EXPECT_EQ(value("ttl", {}, more), "22s from simba.yaml:1");
  write("variable.yaml", "simba: {ttl: 23s}\n");
  more.emplace_back("SIMBA_CONFIG=variable.yaml");
  EXPECT_EQ(value("ttl", {}, more), "23s from variable.yaml:1");
  write("flag.yaml", "simba: {ttl: 24s}\n");
  EXPECT_EQ(value("ttl", {"--config", "flag.yaml"}, more), "24s from flag.yaml:1");
}

TEST_F(ConfigTest, EverySettingHasItsVariable) {
  write("simba.yaml",
        "simba: {id: a, ttl: 20s, transition: 7s, initial-delay: 1s, kill-after: 300ms}\n");
  EXPECT_EQ(value("id", {}, {"SIMBA_ID=b"}), "b from SIMBA_ID");
  EXPECT_EQ(value("ttl", {}, {"SIMBA_TTL=21s"}), "21s from SIMBA_TTL");
  EXPECT_EQ(value("transition", {}, {"SIMBA_TRANSITION=8s"}), "8s from SIMBA_TRANSITION");
  EXPECT_EQ(value("initial-delay"), "1s from simba.yaml:1");
  EXPECT_EQ(value("initial-delay", {}, {"SIMBA_INITIAL_DELAY=2s"}), "2s from SIMBA_INITIAL_DELAY");
  EXPECT_EQ(value("kill-after", {}, {"SIMBA_KILL_AFTER=400ms"}), "400ms from SIMBA_KILL_AFTER");
}

TEST_F(ConfigTest, WhatIsNoFileIsNotTakenForAnEmptyOne) {
  std::filesystem::create_directory(file("simba.yaml"));
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml is a directory; settings are read from a file"));
  const Result run = run_tool({"run", "--config", "simba.yaml", "job", "--", "echo", "ran"});
  EXPECT_EQ(run.code, exit_code::kUsage);
  EXPECT_EQ(run.out, "");
  std::filesystem::remove(file("simba.yaml"));
  std::filesystem::create_symlink("gone.yaml", file("simba.yaml"));
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml is a link to nothing"));
}

TEST_F(ConfigTest, CommandsGoByIt) {
  write("simba.yaml", "simba:\n  store: sqlite:" + file("mine.db").string() +
                          "\n  ttl: 3s\n  transition: 2s\n  id: configured\n");
  EXPECT_EQ(run_tool({"run", "x", "--", "sh", "-c", tool() + " show --json x > shown"}).code, 0);
  const Json shown = Json::parse(read_file(file("shown")));
  EXPECT_EQ(shown["label"], "configured");
  EXPECT_LE(shown["lease_left_ms"], 5000);
}

TEST_F(ConfigTest, EveryStoreHasItsSectionsAndTheNarrowestHasTheFirstWord) {
  struct Row {
    const char *url, *section;
  };
  for (const Row& row :
       {Row{"mysql://db/app", "mysql"}, Row{"mysql://db/app", "jdbc"},
        Row{"mariadb://db/app", "mysql"}, Row{"mariadb://db/app", "jdbc"},
        Row{"postgresql://db/app", "postgres"}, Row{"postgresql://db/app", "jdbc"},
        Row{"redis://cache", "redis"}, Row{"rediss://cache", "redis"},
        Row{"redis+sentinel://cache/main", "redis"}, Row{"rediss+cluster://cache", "redis"},
        Row{"zookeeper://zk", "zookeeper"}, Row{"mongodb://m/app", "mongodb"},
        Row{"mongodb+srv://m.example.org/app", "mongodb"}, Row{"sqlite:a.db", "sqlite"},
        Row{"memory:a", "memory"}}) {
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

// The parser of YAML made documents of it until there was no memory left.
TEST_F(ConfigTest, WhatBeginsNothingIsRefusedAndNotReadForEver) {
  write("simba.yaml", ",\n");
  EXPECT_THAT(refusal(),
              HasSubstr("simba.yaml:1: this is not YAML (nothing of YAML begins like this)"));
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
      {"initial-delay: 9000h",
       {},
       {},
       "simba.yaml:2: initial-delay is '9000h'; it can be at most 365d"},
      {"kill-after: 9s", {}, {}, "simba.yaml:2: kill-after is 9s, but with ttl 10s"},
      {"", {"SIMBA_KILL_AFTER=9s"}, {}, "SIMBA_KILL_AFTER: kill-after is 9s, but with"},
      {"", {}, {"--kill-after", "9s"}, "--kill-after is 9s, but with ttl 10s"},
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

TEST_F(ConfigTest, TheFileThatWasReadIsNamed) {
  EXPECT_EQ(value("config"), "none from default");
  write("simba.yaml", "simba: {ttl: 20s}\n");
  EXPECT_EQ(value("config"), "simba.yaml from default");
  write("other.yaml", "simba: {ttl: 30s}\n");
  EXPECT_EQ(value("config", {"--config", "other.yaml"}), "other.yaml from --config");
  EXPECT_EQ(value("config", {}, {"SIMBA_CONFIG=other.yaml"}), "other.yaml from SIMBA_CONFIG");
}

TEST_F(ConfigTest, ASectionThatIsNotInUseIsCheckedToo) {
  write("simba.yaml", "simba:\n  store: sqlite:a.db\n  jdbc:\n    ttl: 0s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4: ttl is 0 ms; it must be between 1 ms"));
  write("simba.yaml", "simba:\n  store: sqlite:a.db\n  transition: 0s\n  jdbc: {ttl: 110ms}\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4, simba.yaml:3: "));
}

TEST_F(ConfigTest, AFileThatIsNoYamlIsSaidInWordsOfOurs) {
  write("simba.yaml", "simba:\n\tttl: 10s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:2: a tab stands before the key"));
  for (const char* quote : {"\"", "'"}) {
    write("simba.yaml", std::string("simba:\n  ttl: 10s\n  id: ") + quote + "open\n");
    EXPECT_THAT(refusal(), HasSubstr("simba.yaml:3: this is not YAML (a quote is not closed)"));
    write("simba.yaml", std::string("simba:\n  id: ") + quote + "open\n  ttl: 10s\n");
    EXPECT_THAT(refusal(), HasSubstr("simba.yaml:2: this is not YAML (a quote is not closed)"));
  }
  write("simba.yaml", "simba:\n  id: it's \"mine\"\n  ttl: 20s # don't\n...\n");
  EXPECT_EQ(value("ttl"), "20s from simba.yaml:3");
  write("simba.yaml", "simba:\n  id: [open\n");
  EXPECT_THAT(refusal(), HasSubstr("this is not YAML ("));
  EXPECT_THAT(refusal(), HasSubstr("look at the quotes"));
}

TEST_F(ConfigTest, AFileThatEverybodyCanWriteIsRefused) {
  write("simba.yaml", "simba: {ttl: 1s}\n");
  chmod(file("simba.yaml").c_str(), 0666);
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml can be written by everybody"));
}

TEST_F(ConfigTest, WhatKillAfterIsByDefaultIsSaidInFigures) {
  EXPECT_EQ(value("kill-after"), "2s from default");
  EXPECT_EQ(value("kill-after", {"--ttl", "2s", "--transition", "1s"}), "558ms from default");
  EXPECT_EQ(value("kill-after", {"--kill-after", "500ms"}), "500ms from --kill-after");
}

TEST_F(ConfigTest, AVariableThatIsMistypedIsNotPassedOver) {
  const auto said = [&](const Words& environment) { return value("ttl", {}, environment); };
  EXPECT_THAT(said({"SIMBA_TLT=30s"}),
              HasSubstr("the variable SIMBA_TLT is not known; did you mean SIMBA_TTL? It can be "
                        "SIMBA_CONFIG, SIMBA_STORE, SIMBA_STORE_FILE, SIMBA_ID, SIMBA_TTL, "));
  EXPECT_THAT(said({"SIMBA_STROE=redis://:canary@cache"}),
              ::testing::AllOf(HasSubstr("did you mean SIMBA_STORE?"), Not(HasSubstr("canary"))));
  EXPECT_EQ(run_tool({"run", "x", "--", "true"}, {"SIMBA_WAT=1"}).code, exit_code::kUsage);
  EXPECT_EQ(said({"SIMBA_MUTEX=x", "SIMBA_TOKEN=1", "SIMBA_OWNER=me", "SIMBA_TEST_X=1",
                  "SIMBA_SERVICE_HOST=10.0.0.1", "SIMBA_PORT=tcp://10.0.0.1:80",
                  "SIMBA_PORT_80_TCP_ADDR=10.0.0.1"}),
            "10s from default");
}

TEST_F(ConfigTest, TheInitialDelayPassesBeforeTheFirstClaim) {
  write("simba.yaml", "simba:\n  store: " + url() + "\n  sqlite: {initial-delay: 400ms}\n");
  const std::vector<Words> all{{"run", "--wait", "0", "x"},
                               {"lead", "--restart", "never", "x"},
                               {"schedule", "--every", "1h", "x"}};
  for (const Words& each : all) {
    Words words{tool()};
    words.insert(words.end(), each.begin(), each.end());
    words.insert(words.end(), {"--", "sh", "-c", "date +%s%3N > began; sleep 0.05; kill $PPID"});
    Process::Setting setting;
    setting.directory = file(".");
    const auto now = [] {
      return std::chrono::floor<std::chrono::milliseconds>(
                 std::chrono::system_clock::now().time_since_epoch())
          .count();
    };
    const auto before = now();
    Process process(words, setting);
    ASSERT_TRUE(eventually([&] { return read_file(file("began")).ends_with('\n'); })) << each[0];
    EXPECT_GE(std::stoll(read_file(file("began"))), before + 400) << each[0];
    process.signal(SIGTERM);
    process.wait();
    std::filesystem::remove(file("began"));
  }
}

TEST_F(ConfigTest, ASignalEndsTheInitialDelay) {
  write("simba.yaml", "simba:\n  store: " + url() + "\n  initial-delay: 1h\n");
  Process::Setting setting;
  setting.directory = file(".");
  for (const char* command : {"run", "lead"}) {
    Process process({tool(), command, "x", "--", "true"}, setting);
    // It listens to signals once the store is open.
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file("locks.db-wal")); }));
    EXPECT_FALSE(process.has_ended());
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 128 + SIGTERM) << command;
  }
}

}  // namespace
}  // namespace simba::cli
