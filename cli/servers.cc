#include "cli/servers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "simba/connect.h"
#include "simba/error.h"

namespace simba::cli {
namespace {

// MongoDB's driver counts in shared memory from before main() on. Killed, it leaves that behind;
// finding such, it warns on the terminal, whatever store is asked for. Any value turns that off.
constexpr const char* kDriverSetting = "MONGOC_DISABLE_SHM";
constexpr std::string_view kAdded = "MONGOC_DISABLE_SHM=set-by-simba";

}  // namespace

void settle_in() {
  const char* value = std::getenv(kDriverSetting);  // NOLINT(concurrency-mt-unsafe): no threads yet
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (value != nullptr && kAdded.ends_with(std::string("=") + value)) unsetenv(kDriverSetting);
}

std::vector<char*> own_environment(const std::vector<std::string>& without) {
  std::vector<char*> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
    if (std::find(without.begin(), without.end(), name) == without.end()) all.push_back(*entry);
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it
  if (std::getenv(kDriverSetting) == nullptr) all.push_back(const_cast<char*>(kAdded.data()));
  all.push_back(nullptr);
  return all;
}

#ifdef SIMBA_SERVERS  // where the other program is, seen from this one
namespace {

std::string scheme_of(const std::string& url) { return url.substr(0, url.find(':')); }

bool is_served_here(const std::string& url) {
  const std::string scheme = scheme_of(url);
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme == scheme) return true;
  }
  return false;
}

}  // namespace

void leave_to_servers_program(const std::string& url, const std::vector<std::string>& words) {
  if (!is_served_here(url)) become_servers_program(words);
}

void become_servers_program(const std::vector<std::string>& words) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  const std::string program = self.parent_path() / SIMBA_SERVERS;
  std::vector<char*> arguments{const_cast<char*>("simba")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execve(program.c_str(), arguments.data(), own_environment().data());
}

void need_servers_program(const std::string& url) {
  const bool has_scheme = url.find(':') != url.npos;  // else said where it is opened
  if (!has_scheme || is_served_here(url)) return;
  throw Error(Errc::kMisconfigured, "no store serves '" + scheme_of(url) +
                                        ":' here; stores on servers are in " + kWithoutServers);
}
#else
void leave_to_servers_program(const std::string&, const std::vector<std::string>&) {}
void become_servers_program(const std::vector<std::string>&) {}
void need_servers_program(const std::string&) {}
#endif

}  // namespace simba::cli
