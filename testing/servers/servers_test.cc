#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "testing/servers/directory.h"
#include "testing/servers/loopback.h"
#include "testing/servers/port.h"
#include "testing/servers/process.h"
#include "testing/servers/relay.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::servers {
namespace {

using namespace std::chrono_literals;

bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint16_t port_of(const SharedServer& server) {
  return static_cast<std::uint16_t>(
      std::stoi(server.address().substr(server.address().find(':') + 1)));
}

Command sleeper() {
  Command command;
  command.words = {"sleep", "1000"};
  return command;
}

// Runs `body` in a forked process and returns what it wrote.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];  // NOLINT(modernize-avoid-c-arrays)
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string answer = body();
    [[maybe_unused]] const auto written = write(ends[1], answer.data(), answer.size());
    ::kill(getpid(), SIGKILL);  // no destructor runs
  }
  close(ends[1]);
  std::string answer(4096, '\0');
  const ssize_t got = read(ends[0], answer.data(), answer.size());
  answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return answer;
}

TEST(Ports, AreOfOneProgramEachWhileTheyAreHeld) {
  std::set<std::string> seen;
  std::vector<Port> held(50);
  for (const Port& port : held) EXPECT_TRUE(seen.insert(std::to_string(port.number())).second);
  for (int i = 0; i < 5; ++i) {
    const std::string theirs = in_child([] { return std::to_string(Port().number()); });
    EXPECT_FALSE(theirs.empty());
    EXPECT_FALSE(seen.contains(theirs));
  }
}

TEST(Ports, OfAKilledProgramAreFreeAgain) {
  const std::string theirs = in_child([] {
    static Port port;
    return std::to_string(port.number());
  });
  const auto file = shared_directory("ports") / theirs;
  const UniqueFd lock(open(file.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
}

TEST(Directories, GoWithTheirObjectAndWhatACrashLeftIsSweptByTheNext) {
  const std::filesystem::path orphan = in_child([] {
    static Directory directory;
    std::ofstream(directory.path() / "data") << "x";
    return directory.path().string();
  });
  ASSERT_FALSE(orphan.empty());  // a neighbour may have swept it by now
  std::filesystem::path mine;
  {
    const Directory directory;
    mine = directory.path();
    EXPECT_FALSE(std::filesystem::exists(orphan));
    const Directory another;
    EXPECT_TRUE(std::filesystem::exists(mine));
  }
  EXPECT_FALSE(std::filesystem::exists(mine));
}

TEST(Processes, EndWithTheirObject) {
  pid_t pid = 0;
  {
    Process process(sleeper());
    pid = process.pid();
    EXPECT_TRUE(process.is_running());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Processes, DieWithTheProcessThatStartedThem) {
  // A subreaper, so that the orphan comes to us and its end can be seen.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string pid = in_child([] {
    static Process process(sleeper());
    std::string name = std::to_string(process.pid());
    eventually([&] { return content("/proc/" + name + "/comm") == "sleep\n"; });
    return name;
  });
  ASSERT_FALSE(pid.empty());
  int status = 0;
  EXPECT_TRUE(eventually([&] { return waitpid(std::stoi(pid), &status, WNOHANG) != 0; }));
  EXPECT_TRUE(WIFSIGNALED(status));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(Processes, DoNotDieWithTheThreadThatStartedThem) {
  std::unique_ptr<Process> process;
  std::thread([&] { process = std::make_unique<Process>(sleeper()); }).join();
  EXPECT_FALSE(process->wait(100ms));
  EXPECT_TRUE(process->stop());
}

TEST(Processes, ThatWereStoppedCanBeEnded) {
  Process process(sleeper());
  process.signal(SIGSTOP);
  EXPECT_TRUE(process.stop());
}

TEST(Processes, TellHowTheyEnded) {
  Command command;
  command.words = {"sh", "-c", "exit 3"};
  Process process(command);
  ASSERT_TRUE(process.wait(30s));
  ASSERT_TRUE(process.status());
  EXPECT_EQ(WEXITSTATUS(*process.status()), 3);
  Process killed(sleeper());
  EXPECT_FALSE(killed.status());
  killed.kill();
  ASSERT_TRUE(killed.status());
  EXPECT_EQ(WTERMSIG(*killed.status()), SIGKILL);
}

TEST(Processes, ThatDoNotExistAreNamed) {
  Command command;
  command.words = {"no-such-program"};
  try {
    const Process process(command);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the program 'no-such-program' was not found");
  }
}

TEST(Servers, OfTheUserAreTakenFromTheEnvironment) {
  setenv("SIMBA_TEST_MYSQL_URL", "mysql://me@db/simba", 1);   // NOLINT(concurrency-mt-unsafe)
  setenv("SIMBA_TEST_REDIS_URL", "redis://cache?tls=on", 1);  // NOLINT(concurrency-mt-unsafe)
  const TestServer mysql("mariadb"), redis("redis");
  EXPECT_FALSE(mysql.is_shared());
  EXPECT_EQ(mysql.url(), "mysql://me@db/simba");
  EXPECT_EQ(mysql.url("table=t"), "mysql://me@db/simba?table=t");
  EXPECT_EQ(redis.url("a=b"), "redis://cache?tls=on&a=b");
  EXPECT_THROW(TestServer("oracle"), std::logic_error);
}

// In a directory of temporary files of its own: the servers there are nobody else's. Their ports
// are taken where everybody takes them.
class SharedServers : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto ports = shared_directory("ports");
    setenv("TMPDIR", directory_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    std::filesystem::create_directory_symlink(ports, shared_directory("").parent_path() / "ports");
  }
  void TearDown() override {
    end_unused();
    unsetenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  }

  static void end_unused() {
    Command command;
    command.words = {SIMBA_KEEPER, "--end"};
    Process asked(command);
    ASSERT_TRUE(asked.wait(60s));
    EXPECT_EQ(asked.status(), 0);
  }

  const Directory directory_;
};

TEST_F(SharedServers, AreGoneAfterARequestUnlessSomebodyUsesThem) {
  std::uint16_t port = 0;
  try {
    const SharedServer server("redis");
    port = port_of(server);
    end_unused();
    EXPECT_TRUE(listens(port)) << "somebody uses it";
    EXPECT_EQ(SharedServer("redis").address(), server.address());
  } catch (const Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  end_unused();
  EXPECT_FALSE(listens(port));
  EXPECT_TRUE(listens(port_of(SharedServer("redis"))));  // the next user finds another
}

TEST(Servers, ThatEndSayWhyByTheirLog) {
  const Directory directory;
  Recipe recipe;
  recipe.name = "broken";
  recipe.command.words = {"sh", "-c", "echo no such disk; exit 3"};
  recipe.command.log = directory.path() / "log";
  recipe.is_ready = [] { return false; };
  Server server(recipe);
  try {
    server.start();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "broken ended; the end of its log:\nno such disk\n");
  }
}

TEST(Servers, StartAgainOnTheSamePortAndPauseAndGoOn) {
  const Directory directory;
  const Port port;
  Recipe recipe;
  recipe.name = "http";
  recipe.command.words = {"python3", "-m",        "http.server",
                          "--bind",  "127.0.0.1", std::to_string(port.number())};
  recipe.command.directory = directory.path();
  recipe.is_ready = [&] { return listens(port.number()); };
  if (find_program({"python3"}).empty())
    GTEST_SKIP() << "there is no python3 on the PATH (Debian: python3)";
  std::ofstream(directory.path() / "data") << "kept";
  Server server(recipe);
  server.start();
  const auto get = [&] { return ask(port.number(), "GET /data HTTP/1.0\r\n\r\n", 300ms); };
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
  server.pause();
  EXPECT_EQ(get(), "");
  server.resume();
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
  server.kill();
  EXPECT_FALSE(listens(port.number()));
  server.start();
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
}

TEST(Relays, CarryHoldBackAndCut) {
  if (find_program({"python3"}).empty())
    GTEST_SKIP() << "there is no python3 on the PATH (Debian: python3)";
  const Directory directory;
  std::ofstream(directory.path() / "data") << "kept";
  const Port port;
  Recipe recipe;
  recipe.name = "http";
  recipe.command.words = {"python3", "-m",        "http.server",
                          "--bind",  "127.0.0.1", std::to_string(port.number())};
  recipe.command.directory = directory.path();
  recipe.is_ready = [&] { return listens(port.number()); };
  Server server(recipe);
  server.start();
  Relay relay(port.number());
  const auto get = [&] { return ask(relay.port(), "GET /data HTTP/1.0\r\n\r\n", 300ms); };
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
  for (const auto how : {&Relay::stall, &Relay::mute, &Relay::cut}) {
    (relay.*how)();
    EXPECT_TRUE(eventually([&] { return get().empty(); }));
    relay.mend();
    EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
  }
  relay.lie([](std::string_view said) { return said.empty() ? "" : "no"; });
  EXPECT_TRUE(eventually([&] { return get().starts_with("no"); }));
  relay.flood([](std::string_view) { return "again"; });
  EXPECT_TRUE(eventually([&] { return get().starts_with("againagain"); }));
  relay.mend();
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
  relay.delay(200ms);  // each way: longer than is waited for
  EXPECT_TRUE(eventually([&] { return get().empty(); }));
  EXPECT_TRUE(ask(relay.port(), "GET /data HTTP/1.0\r\n\r\n", 30s).ends_with("kept"));
  relay.delay(0ms);
  EXPECT_TRUE(eventually([&] { return get().ends_with("kept"); }));
}

}  // namespace
}  // namespace simba::servers
