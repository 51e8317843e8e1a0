#pragma once

#include <functional>
#include <string_view>

namespace simba::inline v0 {

enum class LogLevel { kInfo, kWarning, kError };

// Where the library says what people may want to read. Called on any thread; must not throw. No
// line holds a password.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace simba::inline v0
