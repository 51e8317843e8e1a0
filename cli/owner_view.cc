#include "cli/owner_view.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "core/store_span.h"
#include "simba/contender_id.h"

namespace simba::cli {

OwnerView::OwnerView(std::string name, const Observation& seen)
    : mutex(std::move(name)), free(seen.is_free()), token(seen.owner.token) {
  if (free) return;
  owner = seen.owner.id;
  label = label_of(owner);
  lease_left = std::max(core::span_until(seen.owner.transition_at, seen.now), milliseconds{0});
  if (seen.owner.acquired_at && !owner.empty()) {
    held_for = std::max(core::span_until(seen.now, *seen.owner.acquired_at), milliseconds{0});
  }
}

nlohmann::ordered_json OwnerView::fields() const {
  nlohmann::ordered_json object;
  object["mutex"] = mutex;
  object["state"] = state();
  object["owner"] = owner.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(owner);
  object["label"] = label.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(label);
  object["held_for_ms"] =
      held_for ? nlohmann::ordered_json(held_for->count()) : nlohmann::ordered_json();
  object["lease_left_ms"] = lease_left.count();
  object["token"] = token;
  return object;
}

std::string OwnerView::json() const {
  return fields().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace simba::cli
