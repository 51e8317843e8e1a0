#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simba/time.h"

// What the processes of the demo say of their work, and what that proves.
namespace simba::demo {

// Told through a pipe; small enough to arrive whole.
struct Line {
  enum class Kind : int { kAcquired, kReleased, kTick } kind;
  pid_t pid;
  Token token;
  std::int64_t begin, end;  // of the work, in nanoseconds of CLOCK_BOOTTIME
};

class Verdict {
 public:
  void hear(const Line& line);
  // Why the demo has failed, as far as it has been heard; none: it has not.
  std::optional<std::string> objection() const;

 private:
  std::vector<Line> heard_;
  bool two_owners_ = false, takeover_ = false;
};

}  // namespace simba::demo
