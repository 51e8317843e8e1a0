#pragma once

#include <sys/stat.h>

#include <string>

#include "cli/config_file.h"

// Files that say where mutexes live.
namespace simba::cli {

// Throws UsageError for a file that somebody else than root and this user could have written.
void check_writers(const std::string& path, const struct stat& info);

// Everybody on the host.
bool is_read_by_all(const std::string& path);

// The URL in the first line of a file: better kept there than in a list of variables, where it has
// a password. `path`: the file, and who named it. Throws UsageError.
std::string url_in(const Configured& path);

}  // namespace simba::cli
