#pragma once

#include <set>
#include <string>

#include "torture/attack.h"
#include "torture/outcome.h"
#include "torture/target.h"

namespace simba::torture {

struct Report {
  bool holds = false;
  std::set<std::string> broken;     // promises: "P1"
  std::string text, json, picture;  // the picture is an SVG file
};

// Attacks, and says what came of it. `plan` needs no directory; `command` is how to do it again.
// With a promise ("P1") it ends as soon as that one is seen broken. Throws Error (kMisconfigured)
// where the lease of the plan makes no sense.
Report torture(const Target& target, Plan plan, const std::string& command,
               const std::string& until_broken = {});

}  // namespace simba::torture
