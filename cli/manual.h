#pragma once

#include <string>

namespace simba::cli {

// The page of `man` for a command (empty: of simba itself), from the text of its help.
std::string manual(const std::string& command, const std::string& help);

}  // namespace simba::cli
