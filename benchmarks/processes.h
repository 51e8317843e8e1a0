#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace simba::bench {

// Another process, begun when this is made and waited for at the end.
//
// Threads: one at a time.
class Process {
 public:
  // With its output thrown away. Trouble ends the program.
  explicit Process(std::vector<std::string> words);
  Process(Process&& other) noexcept : id_(other.id_) { other.id_ = 0; }
  Process& operator=(Process&&) = delete;
  ~Process() { wait(); }

  void end(int signal);
  // Its exit code.
  int wait();

 private:
  pid_t id_ = 0;
  int code_ = 0;
};

}  // namespace simba::bench
