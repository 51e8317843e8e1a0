#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simba/error.h"
#include "simba/time.h"

namespace simba::core {

// What is worth a line in the log of a store's trouble: each kind at once and then every minute
// while it lasts, and its end once. Of one kind up to three texts: that a connection was closed
// does not tell why there is no new one. Calls are tried again for ever; a line for each would bury
// the rest.
//
// Threads: calls must be serialized.
class Complaints {
 public:
  // Of one mutex, or of a whole call (`mutex` is empty). The line, if it is one.
  std::optional<std::string> failed(std::string_view mutex, const Error& error, LocalTime now);
  // A call was answered.
  std::optional<std::string> answered();

 private:
  using Kind = std::pair<std::string, Errc>;
  struct Said {
    LocalTime first{};               // the minute begins
    std::vector<std::size_t> texts;  // hashes of what was said in it
  };

  std::map<Kind, Said> said_;
  bool is_down_ = false;  // whole calls failed, and that was said
};

}  // namespace simba::core
