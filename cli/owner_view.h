#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

#include "simba/store.h"

namespace simba::cli {

// A mutex as people and scripts read it. Times are spans: the store's clock means nothing
// elsewhere.
struct OwnerView {
  OwnerView(std::string name, const Observation& seen);

  std::string mutex;
  std::string owner;  // the wire id; empty: nobody
  std::string label;  // of the owner: what it calls itself
  bool free = true;   // else held, or evicted with the end of its lease still to come
  std::optional<milliseconds> held_for;
  milliseconds lease_left{0};  // after this, if it is not renewed, others may take it
  Token token = 0;             // of the running term, or of the last one; 0: never held

  const char* state() const { return free ? "free" : owner.empty() ? "evicted" : "held"; }
  nlohmann::ordered_json fields() const;
  // One JSON object, without a newline.
  std::string json() const;
};

}  // namespace simba::cli
