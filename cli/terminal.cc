#include "cli/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace simba::cli {

Terminal::Terminal() {
  if (isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) >= 0) {
    fd_ = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    is_input_ = true;
    return;
  }
  // Its keyboard stops and ends us also when standard input is something else.
  const int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (tty < 0) return;
  fd_ = fcntl(tty, F_DUPFD_CLOEXEC, 3);
  close(tty);
}

Terminal::~Terminal() {
  if (fd_ >= 0) close(fd_);
}

bool Terminal::is_in_foreground() const { return fd_ >= 0 && tcgetpgrp(fd_) == getpgrp(); }

bool Terminal::gives_foreground() const {
  return is_input_ && is_in_foreground() && isatty(STDOUT_FILENO) != 0;
}

void Terminal::give_to(pid_t group) {
  if (tcsetpgrp(fd_, group) == 0) given_ = true;
}

void Terminal::take_back_from(pid_t group) const {
  if (fd_ < 0 || !given_) return;
  const pid_t now = tcgetpgrp(fd_);
  // A shell that was killed leaves the terminal to a job of its own that is gone too.
  const bool is_gone = now > 0 && kill(-now, 0) != 0 && errno == ESRCH;
  if (now == group || is_gone) tcsetpgrp(fd_, getpgrp());
}

}  // namespace simba::cli
