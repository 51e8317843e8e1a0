#pragma once

#include <string>

#include "torture/attack.h"
#include "torture/outcome.h"
#include "torture/target.h"

namespace simba::torture {

struct Report {
  bool holds = false;
  bool is_broken = false;           // a promise was
  std::string text, json, picture;  // the picture is an SVG file
};

// Attacks, and says what came of it. `plan` needs no directory; `command` is how to do it again.
// Throws Error (kMisconfigured) where the lease of the plan makes no sense.
Report torture(const Target& target, Plan plan, const std::string& command,
               Attack::Until until = Attack::Until::kEnd);

}  // namespace simba::torture
