#include "cli/shell_fixture.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace simba::cli {

Shell::Shell(const std::filesystem::path& directory, const std::string& store,
             const Words& program) {
  Words words{"/usr/bin/env", "PS1=> ", "SIMBA_STORE=" + store};
  words.insert(words.end(), program.begin(), program.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const winsize size{40, 200, 0, 0};
  pid_ = forkpty(&fd_, nullptr, nullptr, &size);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
  if (pid_ != 0) return;
  if (chdir(directory.c_str()) != 0) _exit(99);
  execv(arguments[0], arguments.data());
  _exit(99);
}

Shell::~Shell() {
  kill(-pid_, SIGKILL);
  if (fd_ >= 0) close(fd_);
  waitpid(pid_, nullptr, 0);
}

void Shell::look_anew() {
  read_screen();
  seen_from_ = screen_.size();
}

void Shell::type(const std::string& keys) {
  seen_from_ = screen_.size();
  ASSERT_EQ(write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool Shell::shows(const std::string& text, std::chrono::milliseconds patience) {
  const auto is_there = [&] {
    read_screen();
    return recent().find(text) != std::string::npos;
  };
  return eventually(is_there, patience);
}

void Shell::close_terminal() { close(std::exchange(fd_, -1)); }

void Shell::read_screen() {
  pollfd source{fd_, POLLIN, 0};
  char buffer[4096];
  while (poll(&source, 1, 0) > 0) {
    const ssize_t size = read(fd_, buffer, sizeof buffer);
    if (size <= 0) return;
    screen_.append(buffer, static_cast<std::size_t>(size));
  }
}

void TerminalTest::expect_code(Shell& window, const std::string& code) {
  window.type("echo co''de=$?\n");
  EXPECT_TRUE(window.shows("code=" + code + "\r")) << window.recent();
}

}  // namespace simba::cli
