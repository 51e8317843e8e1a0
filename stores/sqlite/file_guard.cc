#include "stores/sqlite/file_guard.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <system_error>

namespace simba::sqlite {
namespace {

constexpr std::int64_t kCompareEveryMs = 100;

std::int64_t in_ms(const timespec& ts) { return ts.tv_sec * 1'000 + ts.tv_nsec / 1'000'000; }

// File times move in steps: of a timer tick, of whole seconds on old formats. A change within the
// same step as the last one cannot be told from it.
bool is_settled(const timespec& modified) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const std::int64_t step_ms = modified.tv_nsec == 0 ? 2'100 : 30;
  return in_ms(now) - in_ms(modified) > step_ms;
}

}  // namespace

FileId file_id(const std::filesystem::path& path) noexcept {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

bool FileGuard::Stamp::operator==(const Stamp& other) const {
  const auto same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  return same(modified, other.modified) && same(changed, other.changed);
}

FileGuard::FileGuard(const Location& location)
    : location_(location),
      wal_(location.wal()),
      shm_(location.shm()),
      directory_(open(location.file.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (directory_ < 0) fail_system(errno, "look at the directory", location.file.parent_path());
}

FileGuard::~FileGuard() { close(directory_); }

void FileGuard::remember() {
  database_ = file_id(location_.given);
  // A reader without write permission may have neither of the two.
  wal_id_ = location_.writable ? file_id(wal_) : FileId{};
  shm_id_ = location_.writable ? file_id(shm_) : FileId{};
  stamp_settled_ = false;
}

bool FileGuard::shares_memory() const {
  const FileId expected = file_id(shm_);
  if (!expected) return false;
  std::error_code trouble;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", trouble)) {
    struct stat info {};
    const auto descriptor =
        static_cast<int>(std::strtol(each.path().filename().c_str(), nullptr, 10));
    if (fstat(descriptor, &info) == 0 && FileId{info.st_dev, info.st_ino} == expected) return true;
  }
  return static_cast<bool>(trouble);  // who cannot look cannot say no
}

bool FileGuard::is_unchanged(std::int64_t boot_ms) {
  if (is_lost_) return false;
  const Stamp stamp = read_stamp();
  // A link elsewhere may be pointed elsewhere: that does not show in this directory.
  const bool is_here = location_.given == location_.file;
  const bool is_recent = boot_ms - compared_at_ < kCompareEveryMs;
  has_compared_ = !(is_here && is_recent && stamp_settled_ && stamp == stamp_);
  if (!has_compared_) return true;
  stamp_ = stamp;
  stamp_settled_ = is_settled(stamp.modified) && is_settled(stamp.changed);
  compared_at_ = boot_ms;
  is_lost_ = !are_same_files();
  return !is_lost_;
}

FileGuard::Stamp FileGuard::read_stamp() const noexcept {
  struct stat info {};
#ifdef __x86_64__
  // Some C libraries look for an empty path instead, which takes the kernel longer.
  syscall(SYS_fstat, directory_, &info);
#else
  fstat(directory_, &info);
#endif
  return {info.st_mtim, info.st_ctim};
}

bool FileGuard::are_same_files() const noexcept {
  return file_id(location_.given) == database_ && (!wal_id_ || file_id(wal_) == wal_id_) &&
         (!shm_id_ || file_id(shm_) == shm_id_);
}

}  // namespace simba::sqlite
