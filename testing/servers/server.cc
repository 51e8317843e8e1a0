#include "testing/servers/server.h"

#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

namespace simba::servers {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void Server::launch() { process_ = std::make_unique<Process>(recipe_.command); }

void Server::await_ready() {
  const auto until = Clock::now() + recipe_.patience;
  while (!recipe_.is_ready()) {
    const bool ended = !is_running();
    if (!ended && Clock::now() < until) {
      std::this_thread::sleep_for(10ms);
      continue;
    }
    std::string log = this->log();
    if (log.size() > 2'000) log.erase(0, log.size() - 2'000);
    throw std::runtime_error(recipe_.name + (ended ? " ended" : " did not get ready in time") +
                             "; the end of its log:\n" + log);
  }
}

void Server::start() {
  launch();
  await_ready();
}

void Server::stop() {
  if (process_) process_->stop(recipe_.stop_signal);
  process_.reset();
}

void Server::kill() { process_.reset(); }

// On a busy machine its threads run on until the first of them has heard of it.
void Server::pause() {
  if (!process_) return;
  process_->signal(SIGSTOP);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WSTOPPED | WEXITED | WNOWAIT);
}

void Server::resume() {
  if (process_) process_->signal(SIGCONT);
}

void Server::restart() {
  stop();
  start();
}

void Server::kill_restart() {
  kill();
  start();
}

std::string Server::log() const {
  std::ifstream file(recipe_.command.log);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace simba::servers
