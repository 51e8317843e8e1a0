#include "stores/sqlite/location.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "stores/sqlite/file_system.h"

namespace simba {
namespace sqlite {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "sqlite: " + why);
}

void check_directory(const fs::path& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) fail_system(errno, "look at the directory", directory);
  if (!S_ISDIR(info.st_mode)) refuse(directory.string() + " is not a directory");
  if ((info.st_mode & S_IWOTH) != 0) {
    refuse(directory.string() +
           " is writable by everybody, so anybody could replace the file; use a directory of your "
           "own (mkdir -m 700)");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0 && geteuid() != 0) {
    refuse("the directory " + directory.string() + " belongs to user " +
           std::to_string(info.st_uid) + ", not to you (" + std::to_string(geteuid()) +
           "); use a directory of your own");
  }
  check_file_system(directory);
}

// mknod makes the file without opening it, and only if nobody else has made it.
void make_file(const fs::path& file) {
  if (mknod(file.c_str(), S_IFREG | 0600, 0) != 0 && errno != EEXIST) {
    fail_system(errno, "create", file);
  }
}

struct Names {
  std::uint64_t count = 0;
  bool is_mounted = false;
};

// Old profiles for seccomp, as of containers, know no statx, and old kernels do not tell by it what
// is mounted.
Names names_of(const fs::path& file) {
  struct statx info {};
  if (statx(AT_FDCWD, file.c_str(), AT_SYMLINK_NOFOLLOW, STATX_NLINK, &info) == 0) {
    const bool is_told = (info.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
    const bool is_mounted = (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return {info.stx_nlink, is_told ? is_mounted : is_mount_point(file)};
  }
  struct stat older {};
  const bool is_barred = errno == EPERM || errno == ENOSYS;
  if (!is_barred || lstat(file.c_str(), &older) != 0) fail_system(errno, "look at", file);
  return {older.st_nlink, is_mount_point(file)};
}

// Nor do they know faccessat2, which only a program with the ids of another user needs.
bool is_writable(const fs::path& file) {
  if (getuid() == geteuid() && getgid() == getegid()) return access(file.c_str(), W_OK) == 0;
  return faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0;
}

// The log and the shared memory are found by the name of the file, links resolved. Who opens the
// same file by another name has others, and meets nobody who came by this one.
void check_only_name(const fs::path& file) {
  const Names names = names_of(file);
  if (names.count > 1) {
    refuse(file.string() + " has " + std::to_string(names.count) +
           " names (hard links); contenders that open it by different names do not see each "
           "other: remove the others (find DIRECTORY -samefile " +
           file.string() + ')');
  }
  if (names.is_mounted) {
    refuse(file.string() +
           " is mounted by itself; contenders that reach it by another path do not see those of "
           "this one: mount its directory instead");
  }
}

void check_file(const fs::path& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) {
    if (errno != ENOENT) fail_system(errno, "look at", file);
    make_file(file);
    if (stat(file.c_str(), &info) != 0) fail_system(errno, "look at", file);
  }
  if (!S_ISREG(info.st_mode)) refuse(file.string() + " is not a regular file");
  if (info.st_uid != geteuid()) {
    refuse(file.string() + " belongs to user " + std::to_string(info.st_uid) + ", not to you (" +
           std::to_string(geteuid()) +
           "); all contenders run as one user, or use a file of your own");
  }
  if ((info.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
    refuse(file.string() + " has mode " + mode + ", others could read or change it; chmod 600 " +
           file.string());
  }
}

// The XDG directories are made with 0700, as their specification wants.
void make_private_directories(const fs::path& directory) {
  std::error_code hidden;  // then it cannot be made either, and that says why
  if (directory.empty() || fs::exists(directory, hidden)) return;
  make_private_directories(directory.parent_path());
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    fail_system(errno, "create the directory", directory);
  }
}

fs::path home() {
  if (const char* set = secure_getenv("HOME"); set != nullptr && *set == '/') return set;
  // The file itself, not a name service: whoever is known to one of those has HOME set, and a
  // program that is linked statically would have to load it.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> users(std::fopen("/etc/passwd", "re"),
                                                              std::fclose);
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  while (users && fgetpwent_r(users.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    if (entry.pw_uid == geteuid()) return entry.pw_dir;
  }
  refuse(
      "there is no home directory (HOME is not set) for the default file; name a file: "
      "sqlite:PATH");
}

// Absolute, links unresolved.
fs::path absolute_name(const fs::path& file) {
  const fs::path named = file.empty() ? default_sqlite_file() : file;
  std::error_code error;
  fs::path given = fs::absolute(named, error);
  if (error) fail_system(error.value(), "find the directory that we are in, for", named);
  if (!given.has_filename()) refuse(given.string() + " names a directory, not a file");
  return given;
}

// Of this file, links resolved.
fs::path checked_directory(const fs::path& given) {
  std::error_code error;
  fs::path directory = fs::canonical(given.parent_path(), error);
  if (error) fail_system(error.value(), "find the directory", given.parent_path());
  check_directory(directory);
  return directory;
}

}  // namespace

void fail_system(int error, const std::string& doing, const fs::path& path) {
  const std::string what = "sqlite: cannot " + doing + ' ' + path.string() + ": " +
                           std::generic_category().message(error);
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      throw Error(Errc::kDenied,
                  what + "; name a file in a directory this user can write: sqlite:PATH");
    case ENOSPC:
    case EDQUOT:
      throw Error(Errc::kUnreachable, what + "; the disk is full: free some space");
    case EMFILE:
    case ENFILE:
    case EIO:
      throw Error(Errc::kUnreachable, what);
    case ENOENT:
      throw Error(Errc::kMisconfigured, what + "; create the directory first (mkdir -m 700)");
    default:
      throw Error(Errc::kMisconfigured, what);
  }
}

Location locate(const fs::path& file) {
  const fs::path given = absolute_name(file);
  if (file.empty()) make_private_directories(given.parent_path());
  const fs::path directory = checked_directory(given);
  check_file(directory / given.filename());
  // The file itself may be a link; then the place it leads to counts as well.
  std::error_code error;
  const fs::path resolved = fs::canonical(given, error);
  if (error) fail_system(error.value(), "find", given);
  if (resolved.parent_path() != directory) check_directory(resolved.parent_path());
  check_only_name(resolved);
  return {given, resolved, is_writable(resolved)};
}

fs::path missing_file(const fs::path& file) {
  fs::path given = absolute_name(file);
  std::error_code error;
  if (fs::symlink_status(given, error).type() != fs::file_type::not_found) return {};
  const bool is_made_with_it = file.empty() && !fs::exists(given.parent_path(), error);
  if (!is_made_with_it) checked_directory(given);
  return given;
}

}  // namespace sqlite

inline namespace v0 {

std::filesystem::path default_sqlite_file() {
  if (geteuid() == 0) return "/var/lib/simba/locks.db";
  const char* state = secure_getenv("XDG_STATE_HOME");
  const std::filesystem::path base = state != nullptr && *state == '/'
                                         ? std::filesystem::path(state)
                                         : sqlite::home() / ".local/state";
  return base / "simba/locks.db";
}

}  // namespace v0
}  // namespace simba
