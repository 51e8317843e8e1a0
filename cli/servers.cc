#include "cli/servers.h"

#include <unistd.h>

#include <filesystem>

#include "simba/connect.h"

namespace simba::cli {

#ifdef SIMBA_SERVERS  // where the other program is, seen from this one
namespace {

bool is_served_here(const std::string& url) {
  const std::string scheme = url.substr(0, url.find(':'));
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
  execv(program.c_str(), arguments.data());
}
#else
void leave_to_servers_program(const std::string&, const std::vector<std::string>&) {}
void become_servers_program(const std::vector<std::string>&) {}
#endif

}  // namespace simba::cli
