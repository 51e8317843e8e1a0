#include "stores/sqlite/file_system.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "simba/error.h"
#include "stores/sqlite/location.h"

namespace simba::sqlite {
namespace {

namespace fs = std::filesystem;

long type_of(const fs::path& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) fail_system(errno, "look at", path);
  return static_cast<long>(info.f_type);
}

bool is_known(long type) {
  constexpr long kZfs = 0x2fc12fc1;
  constexpr std::array kKnown{long{EXT4_SUPER_MAGIC},
                              long{XFS_SUPER_MAGIC},
                              long{BTRFS_SUPER_MAGIC},
                              long{F2FS_SUPER_MAGIC},
                              kZfs,
                              long{TMPFS_MAGIC}};
  return std::find(kKnown.begin(), kKnown.end(), type) != kKnown.end();
}

// In mountinfo a space is \040, and so on.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Where an overlay writes, if that can be seen from here: in a container it mostly cannot.
std::optional<fs::path> upper_of(const fs::path& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) return std::nullopt;
  const std::string device =
      std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skipped, number, options;
    words >> skipped >> skipped >> number;
    while (words >> options) {  // the last word has the options of the file system itself
    }
    constexpr std::string_view kUpper = ",upperdir=";
    const std::size_t at = options.find(kUpper);
    if (number != device || at == std::string::npos) continue;
    const std::size_t from = at + kUpper.size();
    fs::path upper = unescaped(options.substr(from, options.find(',', from) - from));
    std::error_code ignored;
    if (fs::is_directory(upper, ignored)) return upper;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const fs::path& directory, const std::string& where, long type) {
  char hex[32];
  std::snprintf(hex, sizeof hex, "0x%lx", static_cast<unsigned long>(type));
  throw Error(
      Errc::kMisconfigured,
      "sqlite: " + directory.string() + " is on " + where + "a file system of type " + hex +
          ", which is not one of ext4, xfs, btrfs, f2fs, zfs, tmpfs, overlay on these; on network "
          "and unknown file systems locks do not hold: put the file on a local disk");
}

}  // namespace

bool is_mount_point(const fs::path& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skipped, point;
    words >> skipped >> skipped >> skipped >> skipped >> point;
    if (unescaped(point) == path) return true;
  }
  return false;
}

void check_file_system(const fs::path& directory) {
  const long type = type_of(directory);
  if (is_known(type)) return;
  if (type != long{OVERLAYFS_SUPER_MAGIC}) refuse(directory, "", type);
  const auto upper = upper_of(directory);
  if (!upper) return;
  const long below = type_of(*upper);
  // One overlay on another is as good as the lower one, which is not followed further.
  if (!is_known(below) && below != long{OVERLAYFS_SUPER_MAGIC}) {
    refuse(directory, "an overlay that writes to ", below);
  }
}

}  // namespace simba::sqlite
