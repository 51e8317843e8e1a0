#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace simba::cli {

class GuardianLink;

// What the program finds in its environment, and what it does not: the store's URL may hold a
// password.
std::vector<std::string> program_environment(std::string_view mutex, std::string_view token,
                                             std::string_view owner);

// Starts `argv` in a process group of its own, killed by the kernel should this process be killed.
// With a terminal (`tty` >= 0) the group becomes its foreground group. A program that cannot be run
// is reported through `link` by the child, which exits with 126 or 127. Returns the process, which
// is the group too, or -1.
pid_t start_program(const std::vector<char*>& argv, const std::vector<std::string>& environment,
                    int tty, const GuardianLink& link);

}  // namespace simba::cli
