#include "cli/url_file.h"

#include <unistd.h>

#include <fstream>

#include "cli/usage.h"

namespace simba::cli {

void check_writers(const std::string& path, const struct stat& info) {
  const bool is_foreign = info.st_uid != 0 && info.st_uid != geteuid();
  if (!is_foreign && (info.st_mode & S_IWOTH) == 0) return;
  throw UsageError(path +
                   (is_foreign ? " belongs to somebody else" : " can be written by everybody") +
                   ": who can write it decides where mutexes live; use chown and chmod, or another "
                   "file");
}

bool is_read_by_all(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0;
}

std::string url_in(const Configured& path) {
  struct stat info {};
  if (stat(path.value.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    check_writers(path.value, info);
  }
  std::ifstream file(path.value);
  std::string line;
  if (!std::getline(file, line) || line.empty()) {
    throw UsageError("no URL can be read from '" + path.value + "', which " + path.origin +
                     " names: its first line is the URL of the store");
  }
  if (line.back() == '\r') line.pop_back();
  return line;
}

}  // namespace simba::cli
