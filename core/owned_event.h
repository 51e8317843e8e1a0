#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/enrolled.h"
#include "simba/event.h"

namespace simba::core {

// An event with what it points at.
struct OwnedEvent {
  Event event;
  std::shared_ptr<Group> group;  // null: of no mutex
  std::string wire_id;
  std::optional<Error> error;
  bool is_put_off = false;  // the hook hears of it later, on a thread of callbacks

  // Points into it.
  Event view() const {
    Event seen = event;
    if (group) seen.mutex = group->mutex;
    seen.wire_id = wire_id;
    seen.error = error ? &*error : nullptr;
    return seen;
  }
};

}  // namespace simba::core
