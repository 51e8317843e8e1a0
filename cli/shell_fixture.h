#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "cli/tool_fixture.h"

namespace simba::cli {

inline const std::string kCtrlC = "\x03";
inline const std::string kCtrlZ = "\x1a";

// An interactive shell on a pseudo-terminal.
//
// What a command prints is written 'a''b' in the command, so that its echo on the terminal is not
// taken for it.
class Shell {
 public:
  Shell(const std::filesystem::path& directory, const std::string& store,
        const Words& program = {"bash", "--norc", "--noprofile", "--noediting", "-i"});
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  void type(const std::string& keys);
  // What is on the screen by now counts no more.
  void look_anew();
  // Since then, or since the last keys.
  bool shows(const std::string& text,
             std::chrono::milliseconds patience = std::chrono::seconds{60});
  std::string recent() const { return screen_.substr(seen_from_); }
  pid_t pid() const { return pid_; }
  // The window is closed: the terminal is gone, and HUP goes to whom it belonged.
  void close_terminal();

 private:
  void read_screen();

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string screen_;
  std::size_t seen_from_ = 0;
};

class TerminalTest : public ToolTest {
 protected:
  Shell shell{file(""), url()};
  const std::string run = tool() + " run ";

  void expect_code(const std::string& code) { expect_code(shell, code); }
  static void expect_code(Shell& window, const std::string& code);
};

}  // namespace simba::cli
