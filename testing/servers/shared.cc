#include "testing/servers/shared.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "testing/servers/directory.h"
#include "testing/servers/mariadb.h"
#include "testing/servers/server.h"

namespace simba::servers {
namespace {

namespace fs = std::filesystem;

UniqueFd open_locked(const fs::path& file, int how) {
  UniqueFd lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (!lock || ::flock(lock.get(), how) != 0) return {};
  return lock;
}

std::string content(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The keeper is a program of its own, so that it has nothing of this process: no threads, no
// output that somebody waits for. Returns once the server is ready.
void start_keeper(const std::string& kind) {
  const char* const program = SIMBA_KEEPER;
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program, program, kind.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);  // the keeper itself goes on as a grandchild
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 127) {
    throw std::runtime_error(std::string("cannot run ") + program);
  }
}

// How users name a server of theirs, and the URL of ours around its address.
struct Kind {
  std::string_view name;
  const char* variable;
  std::string_view before, after;
};
constexpr std::array<Kind, 7> kKinds{{
    {"mariadb", "SIMBA_TEST_MYSQL_URL", "", ""},
    {"mysql", "SIMBA_TEST_MYSQL_URL", "", ""},
    {"mongodb", "SIMBA_TEST_MONGODB_URL", "", ""},
    {"mongodb-users", "SIMBA_TEST_MONGODB_URL", "", ""},  // lets nobody in without a password
    {"postgres", "SIMBA_TEST_POSTGRES_URL", "", ""},
    // It was started without data: there is nothing to wait for.
    {"redis", "SIMBA_TEST_REDIS_URL", "redis://", "?restart-guard=off"},
    {"zookeeper", "SIMBA_TEST_ZOOKEEPER_URL", "zookeeper://", "?tick=500"},
}};

const Kind& kind_of(std::string_view name) {
  for (const Kind& each : kKinds) {
    if (each.name == name) return each;
  }
  throw std::logic_error("there is no kind of server '" + std::string(name) + "'");
}

}  // namespace

SharedServer::SharedServer(std::string_view asked) {
  // So that nobody who tests the one finds the other.
  const std::string kind(asked == "mariadb" && tests_mysql() ? "mysql" : asked);
  const fs::path place = shared_directory("shared/" + kind);
  // One at a time: the second finds the server that the first has started.
  const UniqueFd one_at_a_time = open_locked(place / "start.lock", LOCK_EX);
  use_ = open_locked(place / "use.lock", LOCK_SH);
  const bool is_kept = !open_locked(place / "keeper.lock", LOCK_EX | LOCK_NB);
  if (!is_kept) {
    for (const char* old : {"address", "unavailable", "failed", "unneeded"}) {
      fs::remove(place / old);
    }
    start_keeper(kind);
  }
  if (fs::exists(place / "unavailable")) throw Unavailable(content(place / "unavailable"));
  if (!fs::exists(place / "address")) {
    throw std::runtime_error("no shared " + kind + ": " + content(place / "failed"));
  }
  address_ = content(place / "address");
}

TestServer::TestServer(std::string_view name) {
  const Kind& kind = kind_of(name);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* given = std::getenv(kind.variable)) {
    url_ = given;
    return;
  }
  shared_.emplace(name);
  url_.append(kind.before).append(shared_->address()).append(kind.after);
}

std::string TestServer::url(const std::string& more) const {
  if (more.empty()) return url_;
  return url_ + (url_.find('?') == url_.npos ? '?' : '&') + more;
}

}  // namespace simba::servers
