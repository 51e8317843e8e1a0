#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "testing/servers/process.h"

namespace simba::servers {

// This machine has no such server: the test is skipped with this reason.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How one server is started, and how it is seen to be ready.
struct Recipe {
  std::string name;  // for messages: "zookeeper"
  Command command;
  std::function<bool()> is_ready;
  int stop_signal = SIGTERM;
  std::chrono::milliseconds patience = std::chrono::seconds(60);  // a dozen may start at once
};

// A server that can be stopped, killed, paused and started again on the same port and data. What a
// kind of server adds is its recipe: directory, port, files.
//
// Threads: one thread at a time, not always the same.
// Errors: std::runtime_error with the end of the log when it does not get ready.
class Server {
 public:
  explicit Server(Recipe recipe) : recipe_(std::move(recipe)) {}

  void start();         // and waits until it is ready
  void launch();        // does not wait
  void await_ready();   // throws when it ended, or when patience does
  void stop();          // in good order
  void kill();          // SIGKILL
  void pause();         // SIGSTOP: it holds its connections and answers nothing
  void resume();        // SIGCONT
  void restart();       // stop, start
  void kill_restart();  // kill, start

  bool is_running() { return process_ && process_->is_running(); }
  pid_t pid() const { return process_ ? process_->pid() : -1; }
  std::string log() const;
  Recipe& recipe() { return recipe_; }

 private:
  Recipe recipe_;
  std::unique_ptr<Process> process_;
};

}  // namespace simba::servers
