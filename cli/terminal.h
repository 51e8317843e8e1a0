#pragma once

#include <sys/types.h>

namespace simba::cli {

// The terminal `simba` was started from, and who may read from it: its foreground process group.
//
// Needs SIGTTOU blocked. Threads: one.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // There is one, and we are one of its jobs.
  bool is_ours() const { return fd_ >= 0; }
  bool is_input() const { return is_input_; }  // standard input
  bool is_in_foreground() const;
  // The program takes the foreground when it starts; not in a pipeline like `simba run ... | less`,
  // whose other ends may need it. There the program gets it when it asks for it.
  bool gives_foreground() const;
  int fd() const { return fd_; }

  void give_to(pid_t group);
  // If `group`, or nobody who is alive, has it.
  void take_back_from(pid_t group) const;
  // The program had the foreground, so that ^C went to it and not to us.
  bool was_given() const { return given_; }
  void note_given() { given_ = true; }  // by the program itself, when it started

 private:
  int fd_ = -1;
  bool is_input_ = false;
  bool given_ = false;
};

}  // namespace simba::cli
