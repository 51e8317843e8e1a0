#include "cli/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace simba::cli {
namespace {

// After so many looks at what a process that forks without end has made, those found are killed
// anyway.
constexpr int kMaxLooks = 50;

struct Process {
  pid_t pid = 0, parent = 0, group = 0;
  char state = 0;
  unsigned long long started = 0;
};

// /proc/PID/stat: "PID (NAME) STATE PARENT GROUP ... STARTED ...", where NAME may hold anything.
std::optional<Process> look_at(pid_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text{};
  const ssize_t size = read(fd, text.data(), text.size() - 1);
  close(fd);
  const std::string_view all(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t name_end = all.rfind(") ");
  if (name_end == all.npos) return std::nullopt;
  Process found;
  found.pid = pid;
  // After the group come 16 numbers, then the time at which it started.
  const int read_fields = std::sscanf(  // NOLINT(cert-err34-c): the kernel wrote it
      all.data() + name_end + 2,
      "%c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &found.state,
      &found.parent, &found.group, &found.started);
  if (read_fields != 4) return std::nullopt;
  return found;
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return all;
  while (const dirent* entry = readdir(proc.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (const auto process = look_at(pid)) all.push_back(*process);
  }
  return all;
}

// Living ones only.
std::vector<Process> descendants() {
  const std::vector<Process> all = all_processes();
  std::vector<Process> found;
  std::vector<pid_t> parents{getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const Process& process : all) {
      if (process.parent != parent) continue;
      parents.push_back(process.pid);
      if (process.state != 'Z' && process.state != 'X') found.push_back(process);
    }
  }
  return found;
}

// Only if it is still the process that was looked at: a number may be given to another.
void signal_exactly(const Process& process, int signal) {
  // glibc 2.36 declares its wrappers of these without extern "C".
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0) return;
  const auto again = look_at(process.pid);
  if (again && again->started == process.started) {
    syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
  }
  close(fd);
}

}  // namespace

void ask_descendants_to_end(pid_t group) {
  const bool has_group = group > 0 && kill(-group, SIGTERM) == 0;
  for (const Process& process : descendants()) {
    if (!has_group || process.group != group) signal_exactly(process, SIGTERM);
    if (process.state == 'T') signal_exactly(process, SIGCONT);
  }
}

// A stopped process cannot fork: once a look finds nobody new, all of them are known.
void kill_descendants() {
  std::vector<Process> known;
  for (int look = 0; look < kMaxLooks; ++look) {
    const std::size_t before = known.size();
    for (const Process& process : descendants()) {
      const bool is_new = std::none_of(known.begin(), known.end(),
                                       [&](const Process& it) { return it.pid == process.pid; });
      if (!is_new) continue;
      signal_exactly(process, SIGSTOP);
      known.push_back(process);
    }
    if (known.size() == before) break;
  }
  for (const Process& process : known) signal_exactly(process, SIGKILL);
}

bool reap_descendants() {
  while (true) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG | __WALL);
    if (pid < 0) return true;
    if (pid == 0) return false;
  }
}

}  // namespace simba::cli
