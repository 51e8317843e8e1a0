#include "cli/signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "cli/exit_codes.h"

namespace simba::cli {
namespace {

constexpr std::array kForwarded{SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP};
constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

template <std::size_t size>
bool holds(const std::array<int, size>& all, int signal) {
  return std::find(all.begin(), all.end(), signal) != all.end();
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Alone unblocked, so that nothing else comes through.
void let_through(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace

Signals::Signals() {
  std::signal(SIGCHLD, SIG_DFL);  // ignored, children would vanish without a status
  sigset_t heard, blocked;
  sigemptyset(&heard);
  for (const int signal : kForwarded) {
    if (!is_ignored(signal)) sigaddset(&heard, signal);
  }
  sigaddset(&heard, SIGCHLD);
  sigaddset(&heard, SIGCONT);
  blocked = heard;
  sigaddset(&blocked, SIGTTOU);  // tcsetpgrp from the background
  sigaddset(&blocked, SIGPIPE);  // a driver's broken connection is an error, not the end
  sigaddset(&blocked, SIGXFSZ);  // as outlive_full_files()
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  fd_ = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

Signals::~Signals() { close(fd_); }

std::optional<int> Signals::next() const {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void outlive_full_files() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

bool is_forwarded(int signal) { return holds(kForwarded, signal); }
bool ends_waiting(int signal) { return holds(kEnding, signal); }

bool stop_by_tstp(Stop whom) {
  kill(whom == Stop::kJob ? 0 : getpid(), SIGTSTP);
  let_through(SIGTSTP);
  sigset_t one, pending;
  sigemptyset(&one);
  sigaddset(&one, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

void die_by(int signal) {
  std::signal(signal, SIG_DFL);
  kill(getpid(), signal);
  let_through(signal);
  _exit(exit_code::kSignalled + signal);
}

}  // namespace simba::cli
