#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace simba::servers {

struct Command {
  std::vector<std::string> words;        // the program and its arguments; looked up on the PATH
  std::filesystem::path directory;       // where it runs
  std::filesystem::path log;             // standard output and error are appended to it
  std::vector<std::string> environment;  // NAME=value, in addition to ours
  std::string user;                      // run as this one; empty: as we do
  int death_signal = SIGKILL;            // what it gets when this process dies
};

// A child process in a group of its own, which does not outlive this object, nor this process:
// also when the process is killed, the child gets its death signal (PR_SET_PDEATHSIG).
//
// Threads: one object, one thread at a time. May be started from a thread that ends before it.
// Errors: std::runtime_error where it cannot be started.
class Process {
 public:
  explicit Process(const Command& command);
  ~Process();  // SIGKILL, and waits
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool is_running();
  // How it ended, as waitpid() tells it; none: nobody has seen its end yet.
  std::optional<int> status() const { return status_; }
  void signal(int number) const;
  // SIGSTOP, and waits until it has stopped: until all its threads have, of which one may be
  // waiting for a disk. False: patience ended first.
  bool pause(std::chrono::milliseconds patience = std::chrono::seconds(10)) const;
  // Sends the signal and waits; SIGKILL once patience ends. False: it took SIGKILL.
  bool stop(int number = SIGTERM, std::chrono::milliseconds patience = std::chrono::seconds(5));
  void kill();
  bool wait(std::chrono::milliseconds patience);

 private:
  bool reap(int options);

  pid_t pid_ = -1;
  bool gone_ = false;
  std::optional<int> status_;
};

// The first of these programs that is there, as a path; empty when none is. Absolute paths are
// taken as they are, others are looked up on the PATH.
std::string find_program(const std::vector<std::string>& candidates);

}  // namespace simba::servers
