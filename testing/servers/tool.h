#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace simba::servers {

// Runs a program and returns what it prints, without the last newline. Throws std::runtime_error
// where it is not there or does not end in time.
//
// Threads: any.
std::string output_of(const std::vector<std::string>& words,
                      std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace simba::servers
