#include "testing/servers/shared.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "testing/servers/directory.h"
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

}  // namespace

SharedServer::SharedServer(std::string_view kind) {
  const fs::path place = shared_directory("shared/" + std::string(kind));
  // One at a time: the second finds the server that the first has started.
  const UniqueFd one_at_a_time = open_locked(place / "start.lock", LOCK_EX);
  use_ = open_locked(place / "use.lock", LOCK_SH);
  const bool is_kept = !open_locked(place / "keeper.lock", LOCK_EX | LOCK_NB);
  if (!is_kept) {
    fs::remove(place / "address");
    fs::remove(place / "unavailable");
    fs::remove(place / "failed");
    start_keeper(std::string(kind));
  }
  if (fs::exists(place / "unavailable")) throw Unavailable(content(place / "unavailable"));
  if (!fs::exists(place / "address")) {
    throw std::runtime_error("no shared " + std::string(kind) + ": " + content(place / "failed"));
  }
  address_ = content(place / "address");
}

}  // namespace simba::servers
