#include "cli/program.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cli/exit_codes.h"
#include "cli/guardian_link.h"

namespace simba::cli {
namespace {

constexpr std::array<std::string_view, 3> kOurs{"SIMBA_TOKEN=", "SIMBA_MUTEX=", "SIMBA_OWNER="};

bool is_ours(std::string_view variable) {
  return std::any_of(kOurs.begin(), kOurs.end(),
                     [&](std::string_view name) { return variable.starts_with(name); });
}

// Runs in the memory of the parent, which waits until the program is loaded: system calls only.
[[noreturn]] void become(char* const* argv, char* const* environment, pid_t parent, int tty,
                         const GuardianLink& link) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(exit_code::kCannotStart);
  if (tty >= 0) tcsetpgrp(tty, getpid());
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  execvpe(argv[0], argv, environment);
  const int error = errno;
  link.send(Report{Report::Kind::kNotStarted, error, false});
  _exit(error == ENOENT ? exit_code::kNotFound : exit_code::kCannotStart);
}

}  // namespace

std::vector<std::string> program_environment(std::string_view mutex, std::string_view token,
                                             std::string_view owner) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_ours(*variable)) all.emplace_back(*variable);
  }
  all.push_back("SIMBA_MUTEX=" + std::string(mutex));
  all.push_back("SIMBA_TOKEN=" + std::string(token));
  all.push_back("SIMBA_OWNER=" + std::string(owner));
  return all;
}

pid_t start_program(const std::vector<char*>& argv, const std::vector<std::string>& environment,
                    int tty, const GuardianLink& link) {
  std::vector<char*> variables;
  variables.reserve(environment.size() + 1);
  for (const std::string& variable : environment) {
    variables.push_back(const_cast<char*>(variable.c_str()));
  }
  variables.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = vfork();
  // NOLINTNEXTLINE(clang-analyzer-unix.Vfork): become() is made for it
  if (child == 0) become(argv.data(), variables.data(), parent, tty, link);
  if (child > 0) setpgid(child, child);  // here too: whoever comes first
  return child;
}

}  // namespace simba::cli
