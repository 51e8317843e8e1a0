#include "examples/demo_verdict.h"

namespace simba::demo {

// Two owners: the work of one overlaps another's, or a smaller token is at work after a larger one.
void Verdict::hear(const Line& line) {
  for (const Line& earlier : heard_) {
    if (line.pid == earlier.pid) continue;
    const bool overlap = line.begin < earlier.end && earlier.begin < line.end;
    const bool backwards = line.begin > earlier.end && line.token < earlier.token;
    if (overlap || backwards) two_owners_ = true;
    if (line.kind == Line::Kind::kAcquired && line.token > earlier.token) takeover_ = true;
  }
  heard_.push_back(line);
}

std::optional<std::string> Verdict::objection() const {
  if (two_owners_) return "two processes led at once";
  if (!takeover_) return "nobody took over";
  return std::nullopt;
}

}  // namespace simba::demo
