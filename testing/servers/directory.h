#pragma once

#include <filesystem>
#include <string_view>

#include "testing/servers/unique_fd.h"

namespace simba::servers {

// Where the test processes of this user meet: <temp>/simba-servers-<uid>/<name>, made when missing.
std::filesystem::path shared_directory(std::string_view name);

// A directory of its own for one server, removed with this object. What a crashed process left
// behind is removed by the next that makes one. Mode 0755: servers that change their user come in.
//
// Threads: one object, one thread.
class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  UniqueFd lock_;
};

}  // namespace simba::servers
