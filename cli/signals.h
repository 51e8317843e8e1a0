#pragma once

#include <csignal>
#include <optional>

namespace simba::cli {

// Takes the signals of this process as values instead of interruptions, from construction on.
// Dispositions are not touched: what was ignored when `simba` was started (as under nohup) stays
// ignored, here and in the program.
//
// Threads: made before any other thread, so that all of them block the same.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // The next one that came; never waits.
  std::optional<int> next() const;

 private:
  int fd_;
};

// From here on a file that may not grow (ulimit -f) is an error, and not the end of this process.
void outlive_full_files();

// Those a user sends to a program: passed on to it by `simba run`.
bool is_forwarded(int signal);
// Those that end a program which does not handle them.
bool ends_waiting(int signal);

// Stops this process, or with kJob its whole process group, as ^Z does. Returns when it was
// continued: true; or at once when nobody is there to continue it: false.
enum class Stop { kSelf, kJob };
bool stop_by_tstp(Stop whom);

// Ends this process by `signal`, as if it had never been blocked. Of use to shells: they see why.
[[noreturn]] void die_by(int signal);

}  // namespace simba::cli
