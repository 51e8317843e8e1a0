#pragma once

#include <string>
#include <vector>

#include "torture/drift.h"
#include "torture/outcome.h"
#include "torture/target.h"

namespace simba::torture {

// What was measured in a run, and what follows from it.
struct Soaked {
  LocalTime began{}, ended{};  // of the faults, and so of the samples
  nanoseconds every{};         // between two samples
  bool is_counted = false;     // the store can be asked what it keeps: then it has to be among them
  std::vector<Series> series;
  Series acquisitions;  // per second; they say how much was done, and are not judged
};

// A series, and whether it is flat. One without enough points to say is not.
struct Growth {
  const Series* series = nullptr;
  std::optional<Drift> drift;
  bool is_flat() const { return drift && drift->is_flat(); }
};
std::vector<Growth> judge(const Soaked& soaked);
// That nobody answered is not flat.
bool is_flat(const Soaked& soaked);

std::string as_text(const Title& title, const Soaked& soaked);
std::string as_json(const Title& title, const Soaked& soaked, const Plan& plan,
                    const std::string& attack);  // the JSON of the attack
// An SVG file: a small picture of each thing that was measured, over the same time.
std::string as_picture(const Title& title, const Soaked& soaked, const std::vector<Fault>& faults);

struct SoakReport {
  bool is_flat = false, holds = false;  // holds: the promises did
  std::vector<std::string> grown;       // names
  std::string text, json, picture;
};

// A long attack at a modest pace, in which clients that are never killed are measured, and the
// store. `plan` needs no directory; `command` is how to do it again.
SoakReport soak(const Target& target, Plan plan, const std::string& command);

}  // namespace simba::torture
