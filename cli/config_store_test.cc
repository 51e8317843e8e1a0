// Which store is used, and where its URL stands.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "cli/config_fixture.h"
#include "cli/exit_codes.h"

namespace simba::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ConfigTest, PasswordsAreLeftOutAndMayStandInAFile) {
  write("url", "postgresql://app:canary@db/app?sslpassword=canary2&sslmode=require\n");
  const Words in_file{"SIMBA_STORE_FILE=" + file("url").string()};
  EXPECT_EQ(value("store", {}, in_file),
            "postgresql://app:***@db/app?sslpassword=***&sslmode=require from SIMBA_STORE_FILE");
  write("url",
        "mongodb://db/?tlsCertificateKeyFilePassword=canary&w=majority&authMechanismProperties="
        "AWS_SESSION_TOKEN:canary\n");
  EXPECT_EQ(
      value("store", {}, in_file),
      "mongodb://db/?tlsCertificateKeyFilePassword=***&w=majority&authMechanismProperties=*** from "
      "SIMBA_STORE_FILE");
  write("url", "postgresql://app:canary@db/app?sslpassword=canary2&sslmode=require\n");
  write("simba.yaml", "simba:\n  store-file: url\n");
  EXPECT_THAT(value("store"), Not(HasSubstr("canary")));
  EXPECT_THAT(value("store"), HasSubstr("postgresql://app:***@db"));
  write("simba.yaml", "simba:\n  store-file: nowhere\n");
  EXPECT_THAT(refusal(), HasSubstr("no URL can be read from 'nowhere', which simba.yaml:2 names"));
}

TEST_F(ConfigTest, APasswordOnTheCommandLineIsRefused) {
  for (const char* url :
       {"redis://:canary@cache", "mysql://app:canary@db/app", "postgresql://db/app?password=canary",
        "mongodb://m/?authMechanismProperties=AWS_SESSION_TOKEN:canary"}) {
    for (const Words& command : {Words{"config"}, Words{"ls"}, Words{"run", "x"}}) {
      Words words = command;
      words.insert(words.end(), {"--store", url});
      if (command[0] == "run") words.insert(words.end(), {"--", "touch", "ran"});
      const Result result = run_tool(words);
      EXPECT_EQ(result.code, exit_code::kUsage) << url;
      EXPECT_THAT(result.err, HasSubstr("--store: the URL has a password, which everybody"));
      EXPECT_THAT(result.err, HasSubstr("set SIMBA_STORE to that URL"));
      EXPECT_THAT(result.out + result.err, Not(HasSubstr("canary")));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(file("ran")));
  EXPECT_EQ(value("store", {"--store", "mongodb://app@m/?authSource=admin"}),
            "mongodb://app@m/?authSource=admin from --store");
  write("password", "canary\n");
  chmod(file("password").c_str(), 0600);
  EXPECT_EQ(value("store", {"--store", "redis://app@cache?password-file=password"}),
            "redis://app@cache?password-file=password from --store");
}

TEST_F(ConfigTest, TheStoreIsNamedOnce) {
  write("url", "redis://cache\n");
  write("simba.yaml", "simba:\n  store: redis://cache\n  store-file: url\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:3: 'store-file' stands beside 'store' "
                                   "(simba.yaml:2)"));
  write("simba.yaml", "");
  EXPECT_THAT(value("store", {}, {"SIMBA_STORE=redis://cache", "SIMBA_STORE_FILE=url"}),
              HasSubstr("SIMBA_STORE and SIMBA_STORE_FILE are both set"));
}

TEST_F(ConfigTest, AStoreThatIsWithheldIsNotReplacedByAnother) {
  write("simba.yaml", "simba: {store: sqlite:a.db}\n");
  const std::string told = value("store", {}, {"SIMBA_STORE=withheld:"});
  EXPECT_THAT(told, HasSubstr("the store of the 'simba' around this program has a password"));
  EXPECT_EQ(value("store", {"--store", "redis://cache"}, {"SIMBA_STORE=withheld:"}),
            "redis://cache from --store");
  write("url", "redis://cache\n");
  EXPECT_EQ(value("store", {}, {"SIMBA_STORE=withheld:", "SIMBA_STORE_FILE=url"}),
            "redis://cache from SIMBA_STORE_FILE");
}

// Whoever runs a program and whoever looks first hear the same.
TEST_F(ConfigTest, AStoreThatCannotBeOpenedNamesWhereItWasSaid) {
  struct Row {
    const char *url, *answer;
  };
  for (const Row& row :
       {Row{"nowhere://db/app", "no store serves 'nowhere:'; this build has "},
        Row{"locks.db", "the store's URL has no scheme; write sqlite:/path/to/file"},
        Row{"postgresql://db:port/app", "a port is a whole number from 1 to 65535"},
        Row{"mysql://db:0/app", "a port is a whole number from 1 to 65535"},
        Row{"mongodb://db:port/app", "the URI is not one"},
        Row{"zookeeper://zk:99999", "a port is a whole number from 1 to 65535"},
        Row{"redis://cache:port", "port is a whole number from 1 to 65535"},
        Row{"sqlite:a.db?synchronous=maybe", "sqlite"},
        Row{"redis://cache?replicas=-1", "replicas is a whole number"}}) {
    write("simba.yaml", "simba:\n  ttl: 10s\n  store: " + std::string(row.url) + '\n');
    for (const Words& command : {Words{"config"}, Words{"ls"}, Words{"run", "x", "--", "true"}}) {
      const Result result = run_tool(command);
      EXPECT_EQ(result.code, exit_code::kUsage) << row.url << ' ' << result.out;
      EXPECT_THAT(result.err, HasSubstr("simba: simba.yaml:3: ")) << command[0];
      EXPECT_THAT(result.err, HasSubstr(row.answer)) << command[0];
    }
  }
  write("simba.yaml", "simba:\n  store: sqlite:/nowhere/a.db\n");
  for (const Words& command :
       {Words{"ls"}, Words{"show", "x"}, Words{"watch", "x"}, Words{"run", "x", "--", "true"},
        Words{"lead", "x", "--", "true"}, Words{"release", "x"}, Words{"init"}, Words{"bench"}}) {
    const Result result = run_tool(command);
    EXPECT_EQ(result.code, exit_code::kUsage) << command[0];
    EXPECT_THAT(result.err, HasSubstr("simba: simba.yaml:2: sqlite: cannot find the directory"))
        << command[0];
  }
  write("simba.yaml", "simba:\n  store: sqlite:open.db\n");
  write("open.db", "");
  EXPECT_THAT(run_tool({"doctor"}).out,
              ContainsRegex("failed +store +simba.yaml:2: sqlite: .*mode"));
  write("simba.yaml", "");
  EXPECT_THAT(value("ttl", {}, {"SIMBA_STORE=nowhere:"}), HasSubstr("SIMBA_STORE: no store"));
  EXPECT_THAT(value("ttl", {"--store", "nowhere:"}), HasSubstr("--store: no store serves"));
}

// In a mount of its own, as nothing else is denied to root.
TEST_F(ConfigTest, AStoreThatIsDeniedNamesWhereItWasSaid) {
  std::filesystem::create_directory(file("shut"));
  write("simba.yaml", "simba:\n  store: sqlite:shut/a.db\n");
  const auto shut = [&](const std::string& command) {
    Process process({"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
                     "mount -t tmpfs -o ro,mode=700 none shut && " + command},
                    {.directory = file(".")});
    const int code = process.wait();
    return Result{code, process.out(), process.err()};
  };
  if (shut("true").code != 0) GTEST_SKIP() << "this user cannot mount a file system";
  for (const char* command : {" run x -- true", " lead x -- true", " init", " bench"}) {
    const Result result = shut(tool() + command);
    EXPECT_EQ(result.code, exit_code::kUnavailable) << command;
    EXPECT_THAT(result.err, HasSubstr("simba: simba.yaml:2: sqlite: cannot create")) << command;
  }
}

TEST_F(ConfigTest, ASchemeOfOthersIsAnsweredWithOurs) {
  struct Row {
    const char *url, *scheme;
  };
  for (const Row& row : {Row{"jdbc:mysql://db/app", "mysql"},
                         Row{"jdbc:mariadb://db/app", "mariadb"},
                         Row{"jdbc:postgresql://db/app", "postgresql"},
                         Row{"jdbc:sqlite:a.db", "sqlite"},
                         Row{"r2dbc:mysql://db/app", "mysql"},
                         Row{"pg://db/app", "postgresql"},
                         Row{"postgres://db/app", "postgresql"},
                         Row{"postgres:db", "postgresql"},
                         Row{"psql://db", "postgresql"},
                         Row{"postgresql+psycopg2://db/app", "postgresql"},
                         Row{"mysql+pymysql://db/app", "mysql"},
                         Row{"zk://zk", "zookeeper"},
                         Row{"zookeper://zk", "zookeeper"},
                         Row{"mongo://m/app", "mongodb"},
                         Row{"mongdb://m/app", "mongodb"},
                         Row{"maria://db/app", "mariadb"},
                         Row{"Redis://cache", "redis"},
                         Row{"sqlite3:a.db", "sqlite"},
                         Row{"file:a.db", "sqlite"},
                         Row{"mem:x", "memory"}}) {
    const Result result = run_tool({"ls", "--store", row.url});
    EXPECT_EQ(result.code, exit_code::kUsage) << row.url;
    EXPECT_THAT(result.err, HasSubstr("did you mean '" + std::string(row.scheme) + ":'? This"))
        << row.url;
  }
}

TEST_F(ConfigTest, AFileWithTheUrlIsAsTrustworthyAsTheOneWithSettings) {
  write("url", "redis://:canary@cache\n");
  const Words in_file{"SIMBA_STORE_FILE=url"};
  chmod(file("url").c_str(), 0600);
  EXPECT_EQ(run_tool({"config"}, in_file).err, "");
  chmod(file("url").c_str(), 0644);
  const std::string warning = "simba: warning: everybody on this host can read the password in ";
  EXPECT_EQ(run_tool({"config"}, in_file).err, warning + "url: use chmod 600\n");
  write("simba.yaml", "simba:\n  store-file: url\n");
  EXPECT_EQ(run_tool({"config"}).err, warning + "url: use chmod 600\n");
  write("simba.yaml", "simba:\n  store: redis://:canary@cache\n");
  EXPECT_EQ(run_tool({"config"}).err, warning + "simba.yaml: use chmod 600\n");
  write("simba.yaml", "");
  write("url", "redis://cache\n");
  EXPECT_EQ(run_tool({"config"}, in_file).err, "") << "there is no password";
  chmod(file("url").c_str(), 0666);
  const Result result = run_tool({"config"}, in_file);
  EXPECT_EQ(result.code, exit_code::kUsage);
  EXPECT_THAT(result.err, HasSubstr("url can be written by everybody"));
}

TEST_F(ConfigTest, AStoreThatIsSwitchedOffIsNotUsed) {
  write("simba.yaml", "simba:\n  store: redis://cache\n  redis:\n    enabled: false\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4: simba.redis.enabled is false"));
}

TEST_F(ConfigTest, WhetherAStoreIsSwitchedOffSaysTheNarrowestSection) {
  write("simba.yaml", "simba:\n  store: mysql://db/app\n  jdbc: {enabled: false}\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.jdbc.enabled is false"));
  write("simba.yaml", read_file(file("simba.yaml")) + "  mysql: {enabled: true}\n");
  EXPECT_EQ(value("store"), "mysql://db/app from simba.yaml:2");
}

}  // namespace
}  // namespace simba::cli
