#include "benchmarks/processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simba::bench {

Process::Process(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawnp(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return;
  std::fprintf(stderr, "simba_bench: cannot run %s: %s\n", arguments[0], std::strerror(error));
  std::exit(2);
}

void Process::end(int signal) {
  kill(id_, signal);
  wait();
}

int Process::wait() {
  if (id_ == 0) return code_;
  int status = 0;
  waitpid(id_, &status, 0);
  id_ = 0;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  return code_;
}

}  // namespace simba::bench
