#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace simba::servers {

// Sends `words` to a port of 127.0.0.1, closes our side and returns what comes back until the other
// closes its side or patience ends. Empty also when nobody listens.
std::string ask(std::uint16_t port, std::string_view words,
                std::chrono::milliseconds patience = std::chrono::seconds(1));

bool listens(std::uint16_t port);

}  // namespace simba::servers
