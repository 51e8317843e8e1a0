#include "testing/servers/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace simba::servers {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

UniqueFd lock_file(const fs::path& file, int how) {
  UniqueFd lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (!lock || ::flock(lock.get(), how) != 0) return {};
  return lock;
}

// A directory whose lock nobody holds belongs to a process that is gone.
void sweep(const fs::path& all) {
  for (const auto& entry : fs::directory_iterator(all)) {
    if (!entry.is_directory()) continue;
    const UniqueFd lock = lock_file(entry.path() / ".lock", LOCK_EX | LOCK_NB);
    std::error_code ignored;
    if (lock) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

fs::path shared_directory(std::string_view name) {
  const fs::path all = fs::temp_directory_path() / ("simba-servers-" + std::to_string(getuid()));
  fs::path path = all / name;
  fs::create_directories(path);
  struct stat seen {};
  if (::lstat(all.c_str(), &seen) != 0 || seen.st_uid != getuid()) {
    errno = EPERM;
    fail(all.string() + " belongs to somebody else");
  }
  return path;
}

Directory::Directory() {
  const fs::path all = shared_directory("run");
  const UniqueFd one_at_a_time = lock_file(all / ".lock", LOCK_EX);
  sweep(all);
  std::string pattern = all / (std::to_string(getpid()) + "-XXXXXX");
  if (!::mkdtemp(pattern.data())) fail("mkdtemp " + pattern);
  path_ = pattern;
  if (::chmod(path_.c_str(), 0755) != 0) fail("chmod " + pattern);
  lock_ = lock_file(path_ / ".lock", LOCK_EX | LOCK_NB);
  if (!lock_) fail("flock " + pattern);
}

Directory::~Directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace simba::servers
