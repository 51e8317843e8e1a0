#include "testing/servers/server.h"

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
  if (process_) process_->stop(recipe_.stop_signal, recipe_.patience);
  process_.reset();
}

void Server::kill() { process_.reset(); }

void Server::pause() {
  if (process_) process_->pause();
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
