// A password that sings: it stands in the URL of a store, and must be found nowhere else, whatever
// goes wrong. Not in what the tool prints, not in a list of processes, not in the environment of
// the program it runs.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "cli/tool_fixture.h"
#include "client/registry.h"
#include "testing/servers/port.h"
#include "testing/servers/relay.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"
#include "testing/servers/tool.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCanary = "canary-4711";

// A store, and a URL with the canary in it, around the port.
struct Nest {
  std::string name;
  std::string server;  // as servers::SharedServer knows it
  std::string before, after;
  bool lets_in;  // its server takes any password, or has this one
  // Where its driver looks for a password that is not in the URL.
  std::string variable = {};
};

void PrintTo(const Nest& nest, std::ostream* out) { *out << nest.name; }

std::vector<Nest> nests() {
  const std::string canary = kCanary;
  return {
      {"redis", "redis", "redis://default:" + canary + "@127.0.0.1:", "?restart-guard=off", true},
      {"postgres", "postgres", "postgresql://postgres:" + canary + "@127.0.0.1:",
       "/postgres?sslmode=disable", true, "PGPASSWORD"},
      {"mysql", "mariadb", "mysql://admin:" + canary + "@127.0.0.1:", "/simba_db?sslmode=disable",
       false, "MYSQL_PWD"},
      {"mysql_users", "mariadb",
       "mysql://canary:" + canary + "@127.0.0.1:", "/simba_db?sslmode=disable", true, "MYSQL_PWD"},
      {"zookeeper", "zookeeper", "zookeeper://me:" + canary + "@127.0.0.1:", "?base=/canaries",
       true},  // the nodes it makes are its own
      {"mongodb", "mongodb", "mongodb://me:" + canary + "@127.0.0.1:", "/?directConnection=true",
       false},
      {"mongodb_users", "mongodb-users",
       "mongodb://root:" + canary + "@127.0.0.1:", "/?directConnection=true", true}};
}

class CanaryTest : public ToolTest, public ::testing::WithParamInterface<Nest> {
 protected:
  void SetUp() override {
    const std::string scheme = GetParam().before.substr(0, GetParam().before.find(':'));
    for (const auto& store : client::built_in_stores()) {
      if (store.scheme == scheme) return;
    }
    GTEST_SKIP() << "this build has no store for " << scheme << ':';
  }

  void use(std::uint16_t port) { use(port, GetParam().after); }
  void use(std::uint16_t port, const std::string& after) {
    url_ = GetParam().before + std::to_string(port) + after;
  }

  // The store's server, behind a relay. False: skipped, with the reason.
  bool use_server() {
    try {
      server_ = std::make_unique<servers::SharedServer>(GetParam().server);
    } catch (const servers::Unavailable& reason) {
      [&] { GTEST_SKIP() << reason.what(); }();
      return false;
    }
    const std::string& address = server_->address();
    const std::size_t at = address.find("127.0.0.1:") + 10;
    relay =
        std::make_unique<servers::Relay>(static_cast<std::uint16_t>(std::stoi(address.substr(at))));
    if (GetParam().server != "mariadb") {
      use(relay->port());
      return true;
    }
    // A server of MySQL is given a password only where it proves who it is, as its own URL says.
    const std::size_t path = address.find('/', at);
    use(relay->port(), address.substr(path));
    if (GetParam().name == "mysql_users") make_user(address.substr(at, path - at));
    return true;
  }

  // Whose password is the canary. Others of the server need none, and are refused with one.
  static void make_user(const std::string& port) {
    const std::string sql =
        "DO GET_LOCK('simba:roles', 60); CREATE USER IF NOT EXISTS canary@'%' "
        "IDENTIFIED BY '" +
        std::string(kCanary) +
        "'; GRANT SELECT, INSERT, UPDATE, CREATE ON simba_db.* TO canary@'%'";
    servers::output_of({"mariadb", "--no-defaults", "--user=admin", "--host=127.0.0.1",
                        "--port=" + port, "--execute=" + sql},
                       std::chrono::seconds(90));
  }

  // By the environment, by a file it names, by the file with settings, and by the variable of its
  // driver.
  std::vector<Words> ways() const {
    std::ofstream(file("url")) << url_ << '\n';
    std::ofstream(file("simba.yaml")) << "simba:\n  store: " << url_ << '\n';
    std::vector<Words> all{{"SIMBA_STORE=" + url_},
                           {"SIMBA_STORE=", "SIMBA_STORE_FILE=" + file("url").string()},
                           {"SIMBA_STORE=", "SIMBA_CONFIG=" + file("simba.yaml").string()}};
    if (GetParam().variable.empty()) return all;
    std::string bare = url_;
    bare.erase(bare.find(':' + std::string(kCanary)), 1 + std::string(kCanary).size());
    all.push_back({"SIMBA_STORE=" + bare, GetParam().variable + '=' + kCanary});
    return all;
  }

  static void expect_silence_of(const Process& process) {
    EXPECT_THAT(process.out() + process.err(), Not(HasSubstr(kCanary)));
    EXPECT_NE(process.out() + process.err(), "");
  }
  void expect_silence(const Words& command) const { expect_silence(command, {ways().front()}); }
  void expect_silence(const Words& command, const std::vector<Words>& all_ways) const {
    for (const Words& way : all_ways) {
      const Result result = simba(command, {.environment = way});
      EXPECT_THAT(result.out + result.err, Not(HasSubstr(kCanary)))
          << ::testing::PrintToString(command);
      EXPECT_NE(result.out + result.err, "") << ::testing::PrintToString(command);
    }
  }

  std::unique_ptr<servers::Relay> relay;
  std::string url_;

 private:
  std::unique_ptr<servers::SharedServer> server_;
};

void expect_clean(pid_t pid, const char* what) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + '/' + what);
  EXPECT_EQ(text.find(kCanary), text.npos) << what << " of " << pid;
}

// The process and all below it.
std::vector<pid_t> family_of(pid_t pid) {
  std::vector<pid_t> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const pid_t child : children_of(all[i])) all.push_back(child);
  }
  return all;
}

TEST_P(CanaryTest, IsNotPrintedWithTheSettings) {
  use(1);
  expect_silence({"config"}, ways());
  expect_silence({"config", "--json"}, ways());
}

// Every command that opens the store, all at once: most of them wait for a while.
TEST_P(CanaryTest, IsNotPrintedWhereNobodyListens) {
  const servers::Port nobody;
  use(nobody.number());
  const Words way = ways().front();
  const auto begin = [&](const Words& command) { return start(command, {.environment = way}); };
  std::vector<std::unique_ptr<Process>> ending, lasting;
  for (const Words& command :
       {Words{"show", "--json", "x"}, Words{"run", "--wait", "300ms", "x", "--", "true"},
        Words{"ls"}, Words{"watch", "x"}, Words{"release", "x"}, Words{"init"}, Words{"doctor"},
        Words{"bench", "--for", "1s"}, Words{"torture", "--for", "1s"}}) {
    ending.push_back(begin(command));
  }
  for (const Words& command :
       {Words{"lead", "x", "--", "true"}, Words{"schedule", "--every", "1h", "x", "--", "true"}}) {
    lasting.push_back(begin(command));
  }
  for (const auto& process : ending) {
    EXPECT_NE(process->wait(), -1) << "it does not end";
    expect_silence_of(*process);
  }
  for (const auto& process : lasting) {
    EXPECT_TRUE(eventually([&] { return !process->err().empty(); })) << "it waits, and says why";
    process->signal(SIGTERM);
    EXPECT_NE(process->wait(), -1);
    expect_silence_of(*process);
  }
}

TEST_P(CanaryTest, IsNotPrintedWhateverTheServerSaysToIt) {
  if (!use_server()) return;
  expect_silence({"show", "--json", "canary-mutex"});
  expect_silence({"release", "--json", "canary-mutex"});
  expect_silence({"ls", "canary-"});
  expect_silence({"doctor"});
  expect_silence({"init", "--print"});
}

TEST_P(CanaryTest, IsNotInTheFamilyOfTheToolNorAfterItsServerHasGone) {
  for (std::size_t way = 0; way < 3 + (GetParam().variable.empty() ? 0U : 1U); ++way) {
    if (!use_server()) return;
    const std::string mutex = "canary-" + std::to_string(getpid()) + '-' + std::to_string(way);
    std::filesystem::remove(file("pid"));
    const auto process = start_script({"--ttl", "2s", "--transition", "2s", "--wait", "25s", mutex},
                                      "env; echo $$ > pid; sleep 60", {.environment = ways()[way]});
    ASSERT_TRUE(
        eventually([&] { return process->has_ended() || read_file(file("pid")).ends_with('\n'); }));
    ASSERT_EQ(!process->has_ended(), GetParam().lets_in) << process->err();
    if (GetParam().lets_in) {
      for (const pid_t each : family_of(process->pid())) expect_clean(each, "cmdline");
      expect_clean(pid_in("pid"), "environ");
      // A `simba` within the program would else mean another store.
      if (way == 0) {
        EXPECT_THAT(process->out(), HasSubstr("SIMBA_STORE=withheld:\n"));
      }
      relay->cut();
      EXPECT_NE(process->wait(), -1) << "it outlived its lease";
    }
    EXPECT_THAT(process->out() + process->err(), Not(HasSubstr(kCanary)));
  }
}

// What runs again and again has guardians that are started anew.
TEST_P(CanaryTest, IsNotSeenByWhatTheLeaderRuns) {
  if (!GetParam().lets_in || !use_server()) return;  // else nothing is run
  const auto every_way = ways();
  for (std::size_t way = 0; way < every_way.size(); ++way) {
    const std::string mutex = "canary-" + std::to_string(getpid()) + "-led-" + std::to_string(way);
    for (const Words& command : {Words{"lead"}, Words{"schedule", "--every", "1h"}}) {
      std::filesystem::remove(file("pid"));
      Words words = command;
      words.insert(words.end(), {mutex, "--", "sh", "-c", "env; echo $$ > pid; sleep 60"});
      const auto process = start(words, {.environment = every_way[way]});
      const pid_t program = pid_in("pid");
      ASSERT_GT(program, 0) << process->err();
      for (const pid_t each : family_of(process->pid())) {
        expect_clean(each, "cmdline");
        if (each != process->pid()) expect_clean(each, "environ");
      }
      expect_clean(program, "environ");
      process->signal(SIGTERM);
      EXPECT_NE(process->wait(), -1);
      EXPECT_THAT(process->out() + process->err(), Not(HasSubstr(kCanary)));
    }
  }
}

// The clients of a torture are processes of the tool, and read where the store is as it does.
// What it says in the end is made in one place for all stores: two are enough.
TEST_P(CanaryTest, IsNotPrintedByATorture) {
  const std::string& name = GetParam().name;
  if ((name != "redis" && name != "postgres") || !use_server()) return;
  const Words torture{"torture", "--json", "--for", "1s", "--clients", "2"};
  const auto process = start(torture, {.environment = ways().front()});
  EXPECT_TRUE(eventually([&] {
    for (const pid_t each : family_of(process->pid())) expect_clean(each, "cmdline");
    return process->has_ended();
  }));
  expect_silence_of(*process);
}

INSTANTIATE_TEST_SUITE_P(All, CanaryTest, ::testing::ValuesIn(nests()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace simba::cli
